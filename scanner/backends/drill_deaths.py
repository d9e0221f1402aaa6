"""Faults that end or stop the process, as a GPU's driver would."""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

__all__ = ["DEATHS", "pipes"]

_LATE_S = 0.03
_EXIT_CODE = 7
_STDERR = 2
_MOST_DESCRIPTORS = 64
_GARBAGE = b'\x00\xffnot a message {"type": "result"\n\x1e{"type":\x1e[]\n\x1e'


def _abort(op: str) -> None:
    # The words of an assertion in Apple's MPSGraph, which is what is being drilled for.
    _say(f"drill: failed assertion in {op}: `Incompatible dimensions'\n")
    os.abort()


def _segfault(op: str) -> None:
    _say(f"drill: {op} reads address 0\n")
    ctypes.string_at(0)


def _exit(op: str) -> None:
    _say(f"drill: {op} exits\n")
    os._exit(_EXIT_CODE)


def _late(op: str) -> None:
    """The op itself succeeds; the process dies while something else is running."""

    def die() -> None:
        time.sleep(_LATE_S)
        _abort(op)

    threading.Thread(target=die, daemon=True).start()


def _hang(op: str) -> None:
    _say(f"drill: {op} does not return\n")
    while True:
        time.sleep(60)


def _partial(op: str) -> None:
    _say(f"drill: {op} dies while a result is written\n")
    for pipe in pipes():
        os.write(pipe, b'\x1e{"type":"result","index":0,"status":"nat')
    os._exit(_EXIT_CODE)


def _garbage(op: str) -> None:
    os.write(1, f"drill: {op} prints garbage\n".encode() + _GARBAGE)
    for pipe in pipes():
        os.write(pipe, _GARBAGE)


def _say(text: str) -> None:
    os.write(_STDERR, text.encode())


def pipes() -> Iterator[int]:
    """Descriptors of this process that are writable pipes, the standard streams aside."""
    for descriptor in range(_STDERR + 1, _MOST_DESCRIPTORS):
        try:
            mode = os.fstat(descriptor).st_mode
            access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        except OSError:
            continue
        if stat.S_ISFIFO(mode) and access == os.O_WRONLY:
            yield descriptor


DEATHS: Mapping[str, Callable[[str], None]] = MappingProxyType(
    {
        "abort": _abort,
        "segfault": _segfault,
        "exit": _exit,
        "late": _late,
        "hang": _hang,
        "partial": _partial,
        "garbage": _garbage,
    }
)
"""Fault → what it does before the op runs, given the op's name."""
