"""Known issues: what is registered, and yet raises, crashes or computes something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from opdb.issues.effects import STATUS
from scanner.judge.interface import Knowledge
from scanner.records import OpCall, Target, Verdict
from scanner.statuses import SEVERITY_ORDER

if TYPE_CHECKING:
    from opdb.issues.match import Match
    from opdb.issues.records import Issue

__all__ = ["decide", "decided_by", "issues_of", "with_issues"]


def issues_of(call: OpCall, target: Target, knowledge: Knowledge) -> tuple[Match, ...]:
    """Known issues of a configuration that runs on the device.

    Issues are about what runs there; an op that has no kernel has none.
    """
    if knowledge.lookup(call.op, target.version).status not in {"native", "composite"}:
        return ()
    return knowledge.issues(call, target)


def decide(matches: Sequence[Match]) -> Issue | None:
    """The worst issue that surely applies and says what the op does."""
    sure = [match.issue for match in matches if match.reach == "yes"]
    known = [issue for issue in sure if issue.effect in STATUS]
    return min(known, key=_badness, default=None)


def with_issues(verdict: Verdict, matches: Sequence[Match]) -> Verdict:
    """The verdict, or what the worst known issue says instead."""
    if (issue := decide(matches)) is None:
        return verdict
    return msgspec.structs.replace(
        verdict,
        status=STATUS[issue.effect],
        evidence=issue.evidence,
        reason=_reason(issue),
        fixed_in=issue.fixed_in,
        links=issue.links,
    )


def decided_by(verdict: Verdict, matches: Sequence[Match]) -> bool:
    """Whether an issue made the verdict, and not the database or an execution."""
    issue = decide(matches)
    return issue is not None and verdict.reason == _reason(issue)


def _reason(issue: Issue) -> str:
    return f"{issue.title} ({issue.id})"


def _badness(issue: Issue) -> int:
    return SEVERITY_ORDER.index(STATUS[issue.effect])
