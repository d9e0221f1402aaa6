"""Judged configurations become findings: one for each op, dtype signature and place in the code."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scanner.judge.execution import seen_of
from scanner.judge.interface import Knowledge
from scanner.judge.known import decided_by, issues_of
from scanner.judge.rules import (
    Advice,
    OpCase,
    Problem,
    Rule,
    about_capture,
    about_execution,
    about_issues,
    about_ops,
)
from scanner.judge.rules.equivalents import equivalent_for
from scanner.judge.rules.executed import is_costly
from scanner.judge.verdicts import variable_serves
from scanner.judge.wide import Wide
from scanner.records import Finding, Location, OpGraph, Target, Verdict

if TYPE_CHECKING:
    from opdb.issues.match import Match

__all__ = ["fingerprint", "op_findings", "problem_findings"]

_INDEX = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True, kw_only=True)
class _Hit:
    """One rule that applies to one configuration at one place."""

    rule: Rule[OpCase]
    case: OpCase
    advice: Advice
    location: Location | None
    calls: int

    @property
    def signature(self) -> tuple[str, ...]:
        """What the call is, apart from where it stands in the code."""
        call = self.case.call
        return (
            self.rule.id,
            self.case.target.framework,
            call.op,
            ",".join(spec.dtype for spec in call.inputs),
            ",".join(str(len(spec.shape)) for spec in call.inputs),
            _machine(self.case.target),
            *([self.case.issue.issue.id] if self.case.issue else []),
        )

    @property
    def group(self) -> tuple[tuple[str, ...], tuple[str, int]]:
        """Hits that are one finding: of one op at one place, or, for an issue that depends on
        values which no configuration shows, of the whole model."""
        match = self.case.issue
        if match is None or not match.issue.unseen:
            return self.signature, self.place
        target = self.case.target
        return (self.rule.id, target.framework, _machine(target), match.issue.id), ("", 0)

    @property
    def module(self) -> str:
        """Module path with `*` for the numbers in it: what repeated layers have in common."""
        return _INDEX.sub("*", self.location.module) if self.location else ""

    @property
    def place(self) -> tuple[str, int]:
        return (self.location.file, self.location.line) if self.location else ("", 0)


def op_findings(
    graph: OpGraph, target: Target, verdicts: Sequence[Verdict], knowledge: Knowledge
) -> tuple[Finding, ...]:
    """Findings about the ops of one model on one target, in order of first execution.

    Several modules and shapes at one source line are one finding with the sum of their calls; what
    depends on values is said once, at the first place.
    """
    groups: dict[tuple[tuple[str, ...], tuple[str, int]], list[_Hit]] = {}
    for hit in _hits(graph, target, verdicts, knowledge):
        groups.setdefault(hit.group, []).append(hit)
    occurrence: Counter[tuple[str, ...]] = Counter()
    found = []
    for (signature, _), hits in groups.items():
        # What stays when lines move and releases change.
        identity = (*signature, hits[0].module)
        found.append(_finding(hits, (*identity, str(occurrence[identity]))))
        occurrence[identity] += 1
    return tuple(found)


def problem_findings(problem: Problem, target: str = "") -> tuple[Finding, ...]:
    """Findings about what kept one model from being judged."""
    return tuple(
        Finding(
            rule=rule.id,
            severity=rule.severity,
            target=target,
            op="",
            message=advice.message,
            remedy=advice.remedy,
            location=None,
            fingerprint=fingerprint((rule.id, "", "", "", "", "", _base_name(problem.name), "0")),
        )
        for rule in about_capture
        if (advice := rule.check(problem)) is not None
    )


def _hits(
    graph: OpGraph, target: Target, verdicts: Sequence[Verdict], knowledge: Knowledge
) -> Iterator[_Hit]:
    counts = _calls_by_location(graph)
    wide = Wide.of(graph)
    for index, (call, verdict) in enumerate(zip(graph.ops, verdicts, strict=True)):
        matches = issues_of(call, target, knowledge)
        runs = verdict.status in {"native", "composite"}
        seen = seen_of(call, target, knowledge) if runs else None
        costly = runs and is_costly(call, seen)
        if (runs or verdict.status == "skipped") and not matches and not costly:
            continue
        for number, location in enumerate(call.locations or (None,)):
            sources = wide.sources(index, number if location else -1)
            case = OpCase(
                call=call,
                code=location.code if location else "",
                target=target,
                verdict=verdict,
                variable_serves=variable_serves(
                    call, target.version, knowledge, graph.framework_version
                ),
                rewrite=equivalent_for(call.op, target.version, knowledge),
                inherits_wide=wide.inherits(call, location, sources),
                wide_sources=sources,
                seen=seen,
            )
            calls = counts[index, number if location else -1]
            yield from _apply(case, matches, location, calls, costly=costly)


def _apply(
    case: OpCase,
    matches: Sequence[Match],
    location: Location | None,
    calls: int,
    *,
    costly: bool,
) -> Iterator[_Hit]:
    """What rules say about the verdict, unless an issue made it, and about every issue."""
    ways = [] if decided_by(case.verdict, matches) else [(about_ops, case)]
    ways += [(about_execution, case)] if costly else []
    ways += [(about_issues, replace(case, issue=match)) for match in matches]
    for rules, each in ways:
        for rule in rules:
            if (advice := rule.check(each)) is not None:
                yield _Hit(rule=rule, case=each, advice=advice, location=location, calls=calls)


def _calls_by_location(graph: OpGraph) -> Counter[tuple[int, int]]:
    """(op, location) → executed calls; location -1 is none."""
    if graph.steps:
        return Counter((step.op, step.location) for step in graph.steps)
    # Without steps, calls can be told apart only where there is but one place.
    single = ((index, call) for index, call in enumerate(graph.ops) if len(call.locations) < 2)
    return Counter({(index, len(call.locations) - 1): call.calls for index, call in single})


def _finding(hits: list[_Hit], identity: tuple[str, ...]) -> Finding:
    first = hits[0]
    calls = sum(hit.calls for hit in hits)
    return Finding(
        rule=first.rule.id,
        severity=first.advice.severity or first.rule.severity,
        target=first.case.target.id,
        op=first.case.call.op,
        message=first.advice.message + _per_step(first.advice, calls),
        remedy=first.advice.remedy,
        location=first.location,
        fixed_in=first.advice.fixed_in or first.case.verdict.fixed_in,
        links=first.case.verdict.links if first.advice.links is None else first.advice.links,
        fingerprint=fingerprint(identity),
        calls=calls,
        dtypes=tuple(dict.fromkeys(spec.dtype for spec in first.case.call.inputs)),
    )


def _per_step(advice: Advice, calls: int) -> str:
    """`, 12 times a step`, of what waits in every call."""
    if advice.waits is None or calls < 2:
        return ""
    least, most = (waits * calls for waits in advice.waits)
    times = f"{least} to {most}" if most > least else f"{least}"
    return f", {times} times a step"


def _base_name(name: str) -> str:
    """A file named by its full path is the same on another machine."""
    return name.replace("\\", "/").rpartition("/")[2]


def fingerprint(identity: tuple[str, ...]) -> str:
    """Identity of a finding across runs: a hash of what does not change when code moves."""
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def _machine(target: Target) -> str:
    """The target without versions."""
    fallback = "1" if target.fallback else "0"
    return f"chip={target.chip or ''},ram={target.ram or ''},fallback={fallback}"
