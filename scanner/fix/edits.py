"""Edits in a text: which of them go together, and what they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from scanner.source.interface import Edit, Span
from scanner.source.module import Module

__all__ = ["Change", "apart", "applied", "newline_of"]

_LINE_END = re.compile(r"\r\n|\r|\n")


class Change(NamedTuple):
    """Edits that are made together or not at all."""

    rule: str
    span: Span
    """Of the hit that they mend."""
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()


def apart(changes: Iterable[Change]) -> list[Change]:
    """Changes that touch no text of one another, the earlier in the file first.

    Those left out meet their rule again in the next round, in the new text.
    """
    taken: list[Change] = []
    spans: list[Span] = []
    for change in sorted(changes, key=lambda each: (each.span, each.rule, each.edits)):
        own = sorted(edit.span for edit in change.edits)
        inner = any(_meet(a, b) for a, b in pairwise(own))
        if not inner and not any(_meet(a, b) for a in own for b in spans):
            taken.append(change)
            spans += own
    return taken


def applied(module: Module, edits: Iterable[Edit]) -> str:
    """The text after edits that do not meet; their newlines become those of the file."""
    starts = [0, *(found.end() for found in _LINE_END.finditer(module.text))]
    newline = newline_of(module.text)
    parts: list[str] = []
    at = 0
    for span, text in sorted(edits):
        parts.append(module.text[at : starts[span.line - 1] + span.column - 1])
        parts.append(text.replace("\n", newline))
        at = starts[span.end_line - 1] + span.end_column - 1
    return "".join([*parts, module.text[at:]])


def newline_of(text: str) -> str:
    """How most lines end; `\\n` where there is only one line."""
    ends = _LINE_END.findall(text)
    return max(("\n", "\r\n", "\r"), key=ends.count) if ends else "\n"


def _meet(a: Span, b: Span) -> bool:
    """Whether two ranges share a character, or insert at one place."""
    first, second = sorted((a, b))
    if _is_empty(first) and _is_empty(second):
        return first == second
    return (second.line, second.column) < (first.end_line, first.end_column)


def _is_empty(span: Sequence[int]) -> bool:
    return span[:2] == span[2:]
