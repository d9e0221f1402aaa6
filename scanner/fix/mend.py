"""One text → the same text with its corrections made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scanner.fix.edits import Change, apart, applied
from scanner.fix.head import Head
from scanner.source.check import Checker, RuleHit
from scanner.source.interface import DEVICE, Edit
from scanner.source.module import Module

if TYPE_CHECKING:
    from scanner.records import Finding

__all__ = ["Accepts", "Mended", "Mender", "UnstableError"]

Accepts = Callable[[Sequence["Finding"], str], Sequence[bool]]
"""Which of the findings in a text the user has accepted: they are left alone."""
_ROUNDS = 100


class UnstableError(Exception):
    """Corrections that undo one another: a bug of opscan's."""


class Mended(NamedTuple):
    """The text afterwards, and what the rules say of both."""

    text: str
    before: tuple[Finding, ...]
    after: tuple[Finding, ...]
    remark: str = ""
    """Why corrections were left out that the user might expect."""


class Mender:
    """Makes corrections in any number of texts."""

    def __init__(self, checker: Checker, *, unsafe: bool, accepts: Accepts) -> None:
        self._checker = checker
        self._unsafe = unsafe
        self._accepts = accepts

    def mend(self, text: str) -> Mended:
        """Make corrections until there is none left to make.

        Raises `SyntaxError` for what is no Python, `UnstableError` when there is no end.
        """
        module = Module(text)
        before: tuple[Finding, ...] | None = None
        seen = {text}
        for _ in range(_ROUNDS):
            judged = self._checker.judged(module)
            findings = tuple(finding for _, finding in judged)
            before = findings if before is None else before
            allowed = self._allowed(judged, module.text)
            new = _changed(module, allowed)
            if new is None:
                return Mended(module.text, before, findings, _remark(module, allowed))
            if new.text in seen:
                break
            seen.add(new.text)
            module = new
        raise UnstableError("corrections undo one another")

    def _allowed(self, judged: Sequence[tuple[RuleHit, Finding]], text: str) -> list[RuleHit]:
        accepted = self._accepts([finding for _, finding in judged], text)
        return [
            found
            for (found, _), hidden in zip(judged, accepted, strict=True)
            if not hidden
            and (correction := found.hit.correction) is not None
            and (correction.safe or self._unsafe)
        ]


def _changed(module: Module, hits: Iterable[RuleHit]) -> Module | None:
    """The file after one round; None when nothing is left to do.

    What needs a device chosen comes last: another change may choose one.
    """
    every = list(dict.fromkeys(_changes(module, hits)))
    later = [each for each in every if _uses_device(each.edits)]
    first = [each for each in every if each not in later]
    return _made(module, first) or _made(module, later)


def _changes(module: Module, hits: Iterable[RuleHit]) -> Iterator[Change]:
    formatted: _Formatted | None = None
    for rule, hit in hits:
        if (correction := hit.correction) is None:
            continue
        change = Change(rule.id, hit.span, correction.edits, correction.imports)
        formatted = formatted or _Formatted(module)
        if change.edits and not formatted.touches(change):
            yield change


class _Formatted:
    """The f-strings of a file. Python before 3.12 does not tell places in them exactly, nor allow
    all quotes."""

    def __init__(self, module: Module) -> None:
        texts = [node for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr)]
        self._texts = [module.span(text) for text in texts]
        self._within = {module.span(each) for text in texts for each in ast.walk(text)}

    def touches(self, change: Change) -> bool:
        """Whether a change is in one of them."""
        return change.span in self._within or any(
            text[:2] <= edit.span[:2] < text[2:] for edit in change.edits for text in self._texts
        )


def _made(module: Module, changes: Sequence[Change]) -> Module | None:
    """As many of the changes as leave Python that means something; None when that is none."""
    if not changes:
        return None
    if (whole := _parsed(module, changes)) is not None:
        return whole
    for change in changes:
        if (alone := _parsed(module, [change])) is not None:
            return alone
    return None


def _parsed(module: Module, changes: Iterable[Change]) -> Module | None:
    """The file after changes; None when there are none, or it would be no Python."""
    completed = apart(Head(module).completed(apart(changes)))
    if not completed:
        return None
    text = applied(module, [edit for change in completed for edit in change.edits])
    if text == module.text:
        return None
    try:
        new = Module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return new if _is_readable(new) or not _is_readable(module) else None


def _is_readable(module: Module) -> bool:
    """Whether LibCST, a parser of its own, takes a text for Python too."""
    from scanner.fix.additions import readable

    return readable("\n".join(module.lines)) is not None


def _remark(module: Module, left: Iterable[RuleHit]) -> str:
    """What to say of corrections that are left though they are allowed."""
    corrections = [each.hit.correction for each in left if each.hit.correction is not None]
    if not any(each.imports or _uses_device(each.edits) for each in corrections):
        return ""
    if _is_readable(module):
        return ""
    return (
        "LibCST cannot read the file, so that no import and no definition of a device can be added "
        "to it; corrections that need one were left out"
    )


def _uses_device(edits: Iterable[Edit]) -> bool:
    return any(DEVICE in edit.text for edit in edits)
