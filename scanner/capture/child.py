"""One capture child: started, read while it runs, and ended with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Generic, TypeVar

import msgspec

from scanner.capture.protocol import Crash, Done
from scanner.children import importable

__all__ = ["Ending", "Launch", "run_child"]

_POLL_S = 0.02
_OUTPUT_KEPT = 64 * 1024
_WORKER = (sys.executable, "-m", "scanner.capture.worker")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How children are started and when they are given up."""

    timeout_s: float = 120.0
    """Longest silence: loading the file, and each model in it, may take this long."""
    environ: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = _WORKER
    stop: threading.Event = field(default_factory=threading.Event)
    """Set from another thread to end every child early."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a child ended and what it printed."""

    returncode: int
    """As `subprocess` has it: negative for a signal."""
    timed_out: bool
    stdout: str
    stderr: str

    @property
    def cause(self) -> str:
        """What ended the child, for a sentence that goes on to say what it was doing."""
        if self.returncode >= 0:
            return f"the process exited with code {self.returncode}"
        name = signal.Signals(-self.returncode).name
        hint = " (perhaps for lack of memory)" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint}"


MessageT = TypeVar("MessageT")


def run_child(
    job: msgspec.Struct,
    launch: Launch,
    on_message: Callable[[MessageT | Crash], None],
    decode: Callable[[bytes], MessageT],
) -> Ending:
    """Run one child to its end; `on_message` sees each message as soon as it is written.

    The child runs in a process group of its own, which is killed whole when the child ends, falls
    silent for longer than the limit, or an exception (Ctrl-C) passes through here.
    """
    with tempfile.TemporaryDirectory(prefix="opscan-") as name:
        scratch = Path(name)
        (scratch / "job.json").write_bytes(msgspec.json.encode(job))
        (scratch / "result.jsonl").touch()
        with (scratch / "stdout").open("wb") as out, (scratch / "stderr").open("wb") as err:
            process = _start(scratch, launch, out, err)
            try:
                timed_out = _follow(process, scratch / "result.jsonl", launch, on_message, decode)
            finally:
                _end(process)
        return Ending(
            returncode=process.returncode,
            timed_out=timed_out,
            stdout=_tail(scratch / "stdout"),
            stderr=_tail(scratch / "stderr"),
        )


def _start(
    scratch: Path, launch: Launch, out: IO[bytes], err: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*launch.command, str(scratch / "job.json"), str(scratch / "result.jsonl")],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        # `-m` puts the working directory first on the path: started in the user's, a file of
        # theirs named like one of ours would be imported instead. The child changes over later.
        cwd=scratch,
        env=importable(launch.environ),
        start_new_session=True,
    )


def _follow(
    process: subprocess.Popen[bytes],
    result: Path,
    launch: Launch,
    on_message: Callable[[MessageT | Crash], None],
    decode: Callable[[bytes], MessageT],
) -> bool:
    """Pass messages on until the child ends; True when it was silent for too long."""
    with result.open("rb") as stream:
        lines = _Lines(stream, decode)
        deadline = time.monotonic() + launch.timeout_s
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
            ended = process.returncode is not None
            for message in lines.messages():
                on_message(message)
                deadline = time.monotonic() + launch.timeout_s
                # What torch and the user's file do at exit is of no interest and may take long.
                ended = ended or isinstance(message, Done)
            if ended or launch.stop.is_set():
                return False
            if time.monotonic() > deadline:
                return True


class _Lines(Generic[MessageT]):
    """Complete lines of a file that another process is still writing."""

    def __init__(self, stream: IO[bytes], decode: Callable[[bytes], MessageT]) -> None:
        self._stream = stream
        self._decode = decode
        self._pending = b""

    def messages(self) -> Iterator[MessageT | Crash]:
        *lines, self._pending = (self._pending + self._stream.read()).split(b"\n")
        for line in lines:
            try:
                yield self._decode(line)
            except msgspec.MsgspecError as error:
                yield Crash(traceback=f"unreadable message ({error}): {line[:200]!r}")


def _end(process: subprocess.Popen[bytes]) -> None:
    # Also after a normal end: the user's file may have left processes of its own behind.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _OUTPUT_KEPT))
        return stream.read().decode("utf-8", "replace")
