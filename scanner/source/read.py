"""One file: bytes → findings, or the reason why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scanner.source.check import Checker
from scanner.source.decode import UndecodableError, decode
from scanner.source.module import Module

if TYPE_CHECKING:
    from scanner.records import Finding

__all__ = ["Examined", "Trouble", "examine"]


class Trouble(NamedTuple):
    """Why a file was not judged."""

    reason: str
    line: int = 0
    """0 where no place is known."""
    column: int = 0
    code: str = ""
    traceback: str = ""
    """Of a bug of opscan's; empty where the file is to blame."""


class Examined(NamedTuple):
    """What reading one file gave. Findings name no file: other files may have the same content."""

    findings: tuple[Finding, ...] = ()
    trouble: Trouble | None = None


def examine(content: bytes, checker: Checker) -> Examined:
    """Judge the content of one file."""
    try:
        text = decode(content)
        if not checker.may_hit(text):
            return Examined()
        module = Module(text)
    except UndecodableError as error:
        return Examined(trouble=Trouble(str(error)))
    except SyntaxError as error:
        code = (error.text or "").strip()
        return Examined(trouble=Trouble(error.msg, error.lineno or 0, error.offset or 0, code))
    except (ValueError, RecursionError, MemoryError) as error:
        why = str(error) or type(error).__name__
        return Examined(trouble=Trouble(f"Python's parser gave up: {why}"))
    return _judged(module, checker)


def _judged(module: Module, checker: Checker) -> Examined:
    try:
        return Examined(checker.findings(module))
    except Exception as error:
        import traceback

        reason = f"{type(error).__name__}: {error}"
        return Examined(trouble=Trouble(reason, traceback=traceback.format_exc()))
