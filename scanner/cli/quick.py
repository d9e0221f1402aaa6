"""Answers `opscan db op NAME [--torch V] [-f json]` without click.

Editors and scripts ask this question often, and importing click takes longer than the answer.
Whatever is not in this plain form, and every error, is left to the full command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Question", "answer", "parse"]

_FORMATS = ("text", "json")


class Question(NamedTuple):
    """A plain `db op` command line."""

    name: str
    versions: tuple[str, ...]
    format: str


def parse(arguments: Sequence[str]) -> Question | None:
    """The question that follows `db op`; None for anything but the plain form."""
    names: list[str] = []
    versions: list[str] = []
    format_name = "text"
    rest = iter(arguments)
    for argument in rest:
        if argument == "--torch":
            versions.append(next(rest, ""))
        elif argument in {"-f", "--format"}:
            format_name = next(rest, "")
        else:
            names.append(argument)
    plain = len(names) == 1 and not names[0].startswith("-") and all(versions)
    if not plain or format_name not in _FORMATS:
        return None
    return Question(names[0], tuple(versions), format_name)


def answer(arguments: Sequence[str]) -> int | None:
    """Print the answer and return 0; None when the full command line must deal with it."""
    from scanner.cli.op_text import answer_text
    from scanner.errors import OpscanError

    if (question := parse(arguments)) is None:
        return None
    try:
        text = answer_text(question.name, question.versions, question.format)
    except OpscanError:
        return None
    sys.stdout.write(text)
    return 0
