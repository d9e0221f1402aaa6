"""Which known issues apply to a configuration on a target."""

from __future__ import annotations

from typing import NamedTuple

from opdb.issues.book import Entry, IssueBook
from opdb.issues.condition import holds, vocabulary
from opdb.issues.ranges import Reach, reach
from opdb.issues.records import Issue
from scanner.records import OpCall, Target

__all__ = ["Match", "applies", "find"]


class Match(NamedTuple):
    """An issue that applies, and whether the target is described well enough to be sure."""

    issue: Issue
    reach: Reach


def find(book: IssueBook, call: OpCall, target: Target) -> tuple[Match, ...]:
    """Issues that apply to a call, by id."""
    if target.framework != "torch":
        return ()
    reached = ((entry, reach(entry.issue, target)) for entry in book.about(call.op))
    return tuple(
        Match(entry.issue, how)
        for entry, how in sorted(reached, key=lambda pair: pair[0].issue.id)
        if how != "no" and applies(entry, call, target)
    )


def applies(entry: Entry, call: OpCall, target: Target) -> bool:
    """Whether the issue's condition holds for a call; its ranges are not looked at."""
    return holds(entry.issue.condition, vocabulary(call, target, entry.constants))
