"""One worker process as the supervisor sees it: started, fed, listened to, and ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanner.backends import mps_facts
from scanner.children import importable
from scanner.probe.limits import Launch
from scanner.probe.protocol import (
    OWN_FAULT,
    Begin,
    Command,
    Death,
    DeathKind,
    Frames,
    Message,
    Setup,
    encode,
)

__all__ = ["WorkerProcess"]

_NOISE = re.compile(r"^Extension modules:|<frozen |Current thread.s C stack trace")
_CHUNK = 1 << 16
_SAID_BYTES = 8192
_HEAD_LINES = 12
_TAIL_LINES = 20
_DUMP_S = 0.3
_OUTSIDE = frozenset(
    {"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU", f"exit code {OWN_FAULT}"}
)


class WorkerProcess:
    """A started worker. `setup` is sent at once; use `end` when done with it, whatever happens."""

    def __init__(self, setup: Setup, launch: Launch) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="opscan-worker-")
        folder = Path(self._scratch.name)
        command_read, self._commands = os.pipe()
        self.results, result_write = os.pipe()
        self._stderr = (folder / "stderr").open("w+b")
        try:
            with (folder / "stdout").open("wb") as stdout:
                self._process = subprocess.Popen(
                    [*launch.command, str(command_read), str(result_write)],
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=self._stderr,
                    pass_fds=(command_read, result_write),
                    # `-m` puts the working directory on the path, where a user's file could be
                    # named like one of ours.
                    cwd=folder,
                    env=_environ(launch, setup.device),
                    start_new_session=True,
                )
        finally:
            os.close(command_read)
            os.close(result_write)
        os.set_blocking(self.results, False)
        self._frames = Frames(Message)
        self._said = 0
        self.ended = False
        """Whether its end of the result pipe is closed: everything it said has been received."""
        self.send(setup)

    def send(self, command: Command) -> None:
        """Give it a command; one that is dead already is noticed by `receive`."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._commands, encode(command))

    def receive(self) -> list[Message]:
        """What it has said since; sets `ended` when it can say no more."""
        messages: list[Any] = []
        # Asked before reading: whatever a process has written is in the pipe when it is gone. The
        # pipe's end alone will not do, since a process that it has left behind may hold it open.
        gone = self._gone()
        while not self.ended:
            try:
                data = os.read(self.results, _CHUNK)
            except BlockingIOError:
                self.ended = gone
                break
            self.ended = not data
            messages += self._frames.feed(data)
        for message in messages:
            if isinstance(message, Begin):
                self._said = message.said
        return messages

    def death(self, *, hung: str = "") -> Death:
        """Evidence of how it ended; `hung` says what was waited for, when we had to end it."""
        if hung:
            self._dump()
        self._kill()
        returncode = self._process.wait()
        stderr = self._printed()
        if hung:
            return Death(kind="hang", what=hung, stderr=stderr)
        what = f"exit code {returncode}" if returncode >= 0 else _signal_name(-returncode)
        return Death(kind=_kind(what, stderr), what=what, stderr=stderr)

    def end(self) -> None:
        """Kill it with everything that it has started, and forget its files."""
        self._kill()
        self._process.wait()
        for descriptor in (self._commands, self.results):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._stderr.close()
        self._scratch.cleanup()

    def _gone(self) -> bool:
        return self._process.poll() is not None

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _dump(self) -> None:
        """Have its faulthandler print where it hangs, if it still can."""
        before = os.fstat(self._stderr.fileno()).st_size
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._process.pid, signal.SIGUSR1)
        deadline = time.monotonic() + _DUMP_S
        while time.monotonic() < deadline and not self._gone():
            time.sleep(_DUMP_S / 20)
            if os.fstat(self._stderr.fileno()).st_size > before:
                break

    def _printed(self) -> str:
        """The first and the last lines since the last `Begin`: the cause, and the traceback."""
        descriptor = self._stderr.fileno()
        size = os.fstat(descriptor).st_size
        start = min(self._said, size)
        data = os.pread(descriptor, _SAID_BYTES, start)
        if (left := size - start - len(data)) > 0:
            data += b"\n" + os.pread(descriptor, _SAID_BYTES, size - min(left, _SAID_BYTES))
        text = data.decode("utf-8", "replace")
        # faulthandler lists every extension module that is loaded, and how Python was started.
        lines = [line for line in text.splitlines() if line and not _NOISE.search(line)]
        if len(lines) > _HEAD_LINES + _TAIL_LINES:
            lines[_HEAD_LINES:-_TAIL_LINES] = ["…"]
        return "\n".join(lines).strip()


def _environ(launch: Launch, device: str) -> Mapping[str, str]:
    return importable(
        {
            **launch.threads(device),
            **launch.environ,
            **mps_facts.fallback_variables(launch.fallback),
        }
    )


def _kind(what: str, stderr: str) -> DeathKind:
    if what in _OUTSIDE:
        return "outside"
    if mps_facts.is_out_of_memory(stderr):
        return "memory"
    return "exit" if what.startswith("exit") else "signal"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
