"""Standard streams as they may be: closed, full, left by their reader, or short of characters."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper

from scanner.errors import UsageError

__all__ = ["prepare", "reader_gone", "standard_input", "to_stdout", "unwritable"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF})


def prepare() -> None:
    """Let a closed stream lead nowhere, and escape what a stream's encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - no pathlib on this path
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def standard_input() -> bytes:
    """All of standard input; raises `UsageError` when it is closed."""
    stream = getattr(sys, "stdin", None)
    if stream is None:
        raise UsageError("standard input is closed", remedy="Pipe a file into it, or name one.")
    data: bytes = stream.buffer.read()
    return data


def to_stdout(text: str, *, exact: bool) -> None:
    """Write to standard output: `exact` in UTF-8 for programs, else as its reader can read it.

    A reader who has gone, as in `opscan … | head`, is no error: the scan ends as it would have.
    """
    try:
        if exact and isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())
        else:
            sys.stdout.write(text)
        # Flushed here, so that a reader who has gone is noticed here and not at exit.
        sys.stdout.flush()
    except BrokenPipeError:
        reader_gone()


def reader_gone() -> None:
    """Python must not complain at exit about what nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def unwritable(error: OSError) -> str | None:
    """What to say of a full disk or the like, which is no bug of opscan's; None for others."""
    if error.errno not in _FULL:
        return None
    reader_gone()
    place = f" {os.fsdecode(error.filename)}" if error.filename else ""
    return f"cannot write{place}: {error.strerror}"
