"""The process that runs ops: `python -m scanner.probe.worker COMMANDS RESULTS`.

COMMANDS and RESULTS are descriptors of pipes. The process may be ended by any op at any time; it
keeps nothing that its supervisor does not have.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from scanner.backends import mps_facts
from scanner.probe.protocol import (
    OWN_FAULT,
    Begin,
    Broken,
    Bye,
    Command,
    Frames,
    Idle,
    Ready,
    Refused,
    Result,
    Run,
    Setup,
    Sick,
    encode,
)
from scanner.probe.runner import Runner
from scanner.records import OpCall

__all__ = ["main"]

_CHUNK = 1 << 16
_STDERR = 2
_ORPHANED = 3
_SICK = 4
_HEALTHY = frozenset({"native", "composite", "fallback", "slow", "skipped"})
_LISTED_WARNINGS = 20


class _Pipe:
    """The supervisor's end: commands are read by a thread, so that its death is always noticed."""

    def __init__(self, commands: int, results: int) -> None:
        self._results = results
        self._queue: queue.SimpleQueue[Command] = queue.SimpleQueue()
        for descriptor in (commands, results):
            # What an op starts must not keep the pipes open.
            os.set_inheritable(descriptor, False)
        threading.Thread(target=self._listen, args=(commands,), daemon=True).start()

    def _listen(self, commands: int) -> None:
        frames = Frames(Command)
        while data := os.read(commands, _CHUNK):
            for command in frames.feed(data):
                self._queue.put(command)
        # The supervisor is gone, perhaps killed: nobody will ever want the result in flight.
        os._exit(_ORPHANED)

    def next(self) -> Command:
        return self._queue.get()

    @property
    def idle(self) -> bool:
        return self._queue.empty()

    def send(self, *frames: bytes) -> None:
        data = b"".join(frames)
        while data:
            data = data[os.write(self._results, data) :]


class _Worker:
    def __init__(self, pipe: _Pipe, setup: Setup, runner: Runner) -> None:
        self._pipe = pipe
        self._setup = setup
        self._runner = runner
        self._cases = Path(setup.cases).open("rb")  # noqa: SIM115
        self._size = _resident() + runner.held()
        self._unsent: list[bytes] = []
        self._armed = 0.0

    def serve(self) -> None:
        """Run what is asked for until told to close, or grown too large."""
        while isinstance(command := self._pipe.next(), Run):
            self._run(command)
            if self._grown():
                self._runner.trim()
                if self._grown():
                    return self._close(grown=True)
        return self._close(grown=False)

    def _grown(self) -> bool:
        return _resident() + self._runner.held() > self._size + self._setup.growth

    def _run(self, command: Run) -> None:
        said = os.fstat(_STDERR).st_size
        self._arm()
        # One write tells of the last result and the next beginning: it halves the wake-ups.
        self._pipe.send(*self._unsent, encode(Begin(index=command.index, said=said)))
        self._unsent.clear()
        self._cases.seek(command.start)
        call = msgspec.json.decode(self._cases.read(command.size), type=OpCall)
        message = self._attempt(command.index, call, said)
        if command.careful:
            self._linger()
        if isinstance(message, Broken) or message.status not in _HEALTHY:
            self._require_health(command.index)
        self._unsent.append(_encoded(message))
        if command.careful or self._pipe.idle:
            self._flush()

    def _flush(self) -> None:
        self._pipe.send(*self._unsent, encode(Idle()))
        self._unsent.clear()
        faulthandler.cancel_dump_traceback_later()
        self._armed = 0.0

    def _arm(self) -> None:
        """End the process, some day, when an op hangs and the supervisor is no longer there.

        The listening thread does that at once, unless the op holds the interpreter's lock.
        """
        if time.monotonic() - self._armed > self._setup.orphan_s / 4:
            faulthandler.dump_traceback_later(self._setup.orphan_s, exit=True)
            self._armed = time.monotonic()

    def _attempt(self, index: int, call: OpCall, said: int) -> Result | Broken:
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                ran = self._runner.run(call)
            except Exception as error:
                return _broken(index, error)
            texts = [str(each.message) for each in caught]
            told = mps_facts.fallback_ops("\n".join([*texts, _printed(said)]))
            fallbacks = tuple(dict.fromkeys((*told, *ran.fallbacks)))
            cost = self._cost(call) if fallbacks else {}
        return Result(
            index=index,
            status=ran.status,
            reason=ran.reason,
            detail={**ran.detail, **cost},
            fallbacks=fallbacks,
            warnings=_distinct(texts),
            seconds=time.perf_counter() - start,
        )

    def _cost(self, call: OpCall) -> dict[str, Any]:
        try:
            cost = self._runner.fallback_cost(call)
        except Exception as error:
            return {"fallback_cost_error": f"{type(error).__name__}: {_first_line(error)}"}
        return {"fallback_cost": cost} if cost else {}

    def _require_health(self, index: int) -> None:
        """An error can leave a GPU's context unusable: every later op would fail for it."""
        try:
            self._runner.settle()
            unusable = self._runner.check()
            reason = unusable.reason if unusable else ""
        except Exception as error:
            reason = _first_line(error)
        if reason:
            self._pipe.send(*self._unsent, encode(Sick(index=index, reason=reason)))
            os._exit(_SICK)

    def _linger(self) -> None:
        self._runner.settle()
        time.sleep(self._setup.linger_s)

    def _close(self, *, grown: bool) -> None:
        self._flush()
        self._linger()
        self._pipe.send(encode(Bye(grown=grown)))


def main(arguments: list[str]) -> NoReturn:
    """Serve the supervisor at the other end of the two descriptors."""
    # The listening thread has nothing to say about what an op died of.
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe = _Pipe(*(int(each) for each in arguments))
    setup = pipe.next()
    if not isinstance(setup, Setup):
        raise SystemExit("the first command was no setup")
    if setup.memory is not None:
        # macOS refuses limits below what a process has mapped already.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (setup.memory, setup.memory))
    runner = _runner(setup)
    if unusable := runner.check():
        pipe.send(encode(Refused(unusable=unusable)))
    else:
        pipe.send(encode(Ready(facts=runner.facts)))
        _serve(_Worker(pipe, setup, runner))
    # What frameworks do at exit is of no interest, and some hang there.
    os._exit(0)


def _serve(worker: _Worker) -> None:
    """A fault of the worker itself must not look like one of the op in flight."""
    try:
        worker.serve()
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(OWN_FAULT)


def _runner(setup: Setup) -> Runner:
    module, _, name = setup.runner.partition(":")
    factory: Any = getattr(importlib.import_module(module), name)
    runner: Runner = factory(setup.device, setup.options)
    return runner


def _encoded(message: Result | Broken) -> bytes:
    try:
        return encode(message)
    except (TypeError, ValueError) as error:
        return encode(_broken(message.index, error))


def _broken(index: int, error: Exception) -> Broken:
    return Broken(
        index=index,
        error=f"{type(error).__name__}: {_first_line(error)}",
        traceback="".join(traceback.format_exception(error)),
        memory=isinstance(error, MemoryError) or mps_facts.is_out_of_memory(str(error)),
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


def _printed(said: int) -> str:
    """What has been printed to stderr since; warnings of threads without Python end up there."""
    size = os.fstat(_STDERR).st_size
    if size <= said:
        return ""
    try:
        return os.pread(_STDERR, size - said, said).decode("utf-8", "replace")
    except OSError:
        return ""


def _distinct(texts: list[str]) -> tuple[str, ...]:
    others = [text for text in texts if not mps_facts.fallback_ops(text)]
    return tuple(dict.fromkeys(others))[:_LISTED_WARNINGS]


def _resident() -> int:
    """Bytes of memory in use; the peak where the system does not tell the present."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except OSError:
        # In bytes on macOS.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(sys.argv[1:])
