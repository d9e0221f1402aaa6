"""What a rule is: a check with a name, whose docstring is its documentation page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from scanner.judge.rules.equivalents import Equivalent
from scanner.records import Capture, OpCall, Severity, Target, Value, Verdict
from scanner.rule import Fixes, page_of

if TYPE_CHECKING:
    from opdb.issues.match import Match
    from opdb.simulated import Simulated

__all__ = ["Advice", "OpCase", "Problem", "Rule", "define"]

CaseT = TypeVar("CaseT")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a rule says about one case."""

    message: str
    """What is wrong, in a sentence that begins with the op or model it is about."""
    remedy: str
    """What the user can do, concretely."""
    severity: Severity | None = None
    """Instead of the rule's own, where the case is less sure than the rule."""
    fixed_in: str | None = None
    """Instead of the verdict's, where the rule is about something else."""
    links: tuple[str, ...] | None = None
    waits: tuple[int, int] | None = None
    """How often a call waits for the GPU, least and most: the finding says it of a step."""


@dataclass(frozen=True, kw_only=True)
class OpCase:
    """One op configuration on one target."""

    call: OpCall
    code: str
    """The user's source line that issued it, when known."""
    target: Target
    verdict: Verdict
    variable_serves: bool
    """PYTORCH_ENABLE_MPS_FALLBACK would run it on the CPU, or does."""
    rewrite: Equivalent | None = None
    """Another way to compute the same that the target supports."""
    inherits_wide: bool = False
    """Its float64 input was made by an op that is reported itself."""
    wide_sources: tuple[Value, ...] = ()
    """Parameters, buffers and inputs in float64 that it is the first to read."""
    issue: Match | None = None
    """The known issue that the case is about; None when it is about the verdict."""
    seen: Simulated | None = None
    """What the release did with such calls when it was executed."""

    @property
    def subject(self) -> str:
        """The op, and what it was captured as when the target dispatches another one."""
        return f"{self.call.op} (for {self.call.via})" if self.call.via else self.call.op


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that kept a model, or part of it, from being judged."""

    name: str
    capture: Capture | None = None
    """None when nothing was captured."""
    message: str = ""
    remedy: str = ""
    unreadable: bool = False
    unread: bool = False
    """A source file in a directory that was not judged."""
    internal: bool = False


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[CaseT]):
    """One entry of the registry. Ids are never reused."""

    id: str
    name: str
    severity: Severity
    since: str
    """Version of opscan that introduced it."""
    summary: str
    explanation: str
    """Markdown."""
    check: Callable[[CaseT], Advice | None]
    fixes: Fixes = "none"
    """Only source rules know places that `opscan fix` can change."""


def define(
    id: str,
    name: str,
    severity: Severity,
    *,
    since: str,
) -> Callable[[Callable[[CaseT], Advice | None]], Rule[CaseT]]:
    """Turn a check into a rule; its docstring's first line is the summary, the rest the page."""

    def build(check: Callable[[CaseT], Advice | None]) -> Rule[CaseT]:
        summary, explanation = page_of(check.__doc__)
        return Rule(
            id=id,
            name=name,
            severity=severity,
            since=since,
            summary=summary,
            explanation=explanation,
            check=check,
        )

    return build
