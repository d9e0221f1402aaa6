"""The known issues of a folder, by id and by op. Evaluates nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from opdb.issues.lowered import GENERAL
from opdb.issues.reading import read_folder
from opdb.issues.records import Issue

__all__ = ["Entry", "IssueBook", "default"]

_FOLDER = Path(__file__).parent.parent / "data" / "issues"


class Entry(NamedTuple):
    """An issue, and the constants that its condition may name."""

    issue: Issue
    constants: Mapping[str, Any]


class IssueBook:
    """The issues of one folder, read when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every issue, by id."""
        read = (Entry(issue, constants) for issue, constants in read_folder(self.folder))
        return tuple(sorted(read, key=lambda entry: entry.issue.id))

    def named(self, text: str) -> Issue | None:
        """The issue with an id."""
        return next((entry.issue for entry in self.entries if entry.issue.id == text), None)

    def about(self, op: str) -> Sequence[Entry]:
        """Every issue of an overload (`aten::add_.Tensor`), whatever configuration and release."""
        entries = [entry for name in _spellings(op) for entry in self._by_op.get(name, ())]
        return list({entry.issue.id: entry for entry in entries}.values())

    @cached_property
    def _by_op(self) -> dict[str, list[Entry]]:
        index: dict[str, list[Entry]] = {}
        for entry in self.entries:
            for op in entry.issue.ops:
                index.setdefault(op, []).append(entry)
        return index


def _spellings(op: str) -> tuple[str, ...]:
    """What may name an overload: `add_.Tensor` is meant by `add`, by `add_`, by itself, by `*`;

    an op that only MPS dispatches by the op that it stands for as well.
    """
    full = op.removeprefix("aten::")
    base = full.partition(".")[0]
    plain = base.rstrip("_") if base.endswith("_") and not base.endswith("__") else base
    general = [GENERAL[base].op] if base in GENERAL else []
    return tuple(dict.fromkeys(("*", plain, base, full, *general)))


default = IssueBook(_FOLDER)
