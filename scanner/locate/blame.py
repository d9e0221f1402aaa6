"""Turns what user code raises into one message: where in their file, what, and how to mend it."""

from __future__ import annotations

import linecache
import os
import site
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scanner.errors import LocateError, OpscanError
from scanner.locate.interface import NeedsValues

__all__ = ["blamed", "describe", "is_user_file", "needs_values", "user_frame"]

_VALUE_MARKS = (
    "cannot be called on meta tensors",
    "Cannot copy out of meta tensor",
    "meta device type tensor to numpy",
    "attempted to run this operator with Meta tensors",
    "raises unimplemented by default, as a correct data-independent",
    "argument should be a 1D CPU int64 tensor",
    "a meta tensor without output_size",
    "from the 'Meta' backend",
    "is not implemented for 'Meta'",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "Could not guard on data-dependent",
    "data-dependent expression",
    "unsupported format string passed to Tensor.__format__",
    "only integer tensors of a single element can be converted to an index",
)
"""What torch says when an operation on tensors without values needs one."""

_VALUE_TYPES = frozenset({"DataDependentOutputException", "DynamicOutputShapeException"})


def needs_values(error: BaseException) -> bool:
    """Whether the error, or one that it came from, only says that tensors hold no values here."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, NeedsValues) or type(error).__name__ in _VALUE_TYPES:
            return True
        if any(mark in str(error) for mark in _VALUE_MARKS):
            return True
        following = error.__cause__ or error.__context__
        if following is None:
            break
        error = following
    return False


def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    roots = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]}
    roots |= {*site.getsitepackages(), site.getusersitepackages()}
    roots.add(str(Path(__file__).resolve().parent.parent))
    return tuple(os.path.realpath(root) + os.sep for root in roots)


_LIBRARIES = _library_roots()


def is_user_file(name: str) -> bool:
    """Whether a code file is the user's own: not Python's, a package's or opscan's."""
    return not name.startswith("<") and not os.path.realpath(name).startswith(_LIBRARIES)


def user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The deepest frame of the traceback in the user's own files."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_user_file(frame.filename)]
    return own[-1] if own else None


def describe(error: BaseException, cwd: Path) -> str:
    """`file:line: Type: message` with the source line below it; no place when none is known."""
    text = str(error).strip().split("\n\n")[0]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frame = user_frame(error)
    if frame is None or frame.lineno is None:
        return what
    code = linecache.getline(frame.filename, frame.lineno).strip()
    place = f"{os.path.relpath(frame.filename, cwd)}:{frame.lineno}"
    return f"{place}: {what}" + (f"\n    {code}" if code else "")


@contextmanager
def blamed(doing: str, *, remedy: str, cwd: Path) -> Iterator[None]:
    """Turns every exception of user code into a `LocateError` that says what was being done.

    opscan's own errors pass. An exit becomes an error as well. Errors that only say that tensors
    hold no values become `NeedsValues`.
    """
    try:
        yield
    except (OpscanError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        kind = NeedsValues if needs_values(error) else LocateError
        message = f"{doing}: {describe(error, cwd)}"
        raise kind(message, remedy=remedy) from error
