"""`Report -> Report`: hide what the user has accepted, say what is stale, and weigh the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from scanner.judge.gate import exit_code, summarize
from scanner.records import Finding, Report, Suppression
from scanner.report.found import Found, findings_of
from scanner.suppress.baseline import with_baseline
from scanner.suppress.ignores import Ignored
from scanner.suppress.interface import Policy

__all__ = ["suppress"]


def suppress(report: Report, policy: Policy, known: Sequence[str]) -> Report:
    """The report under a policy; whatever it was under before is forgotten.

    `known` are the ids of all rules. Neither incompleteness nor OPS9xx can be hidden.
    """
    fresh = _rebuilt(report, [_plain(each.finding) for each in findings_of(_without(report))])
    ignored = Ignored(policy, known)
    findings = [ignored.apply(each) for each in findings_of(fresh)]
    stale = list(ignored.stale(fresh))
    for baseline in policy.baselines:
        located = [
            Found(finding, each.model)
            for finding, each in zip(findings, findings_of(fresh), strict=True)
        ]
        findings, fixed = with_baseline(located, baseline, fresh)
        stale += fixed
    accepted = None if policy.is_empty else Suppression(lines=policy.lines, findings=tuple(stale))
    return _weighed(_rebuilt(fresh, findings), policy, accepted)


def _weighed(report: Report, policy: Policy, accepted: Suppression | None) -> Report:
    return msgspec.structs.replace(
        report,
        suppression=accepted,
        summary=summarize(report.models, report.source, accepted),
        exit_code=exit_code(report.models, policy.gate, report.source, accepted),
    )


def _without(report: Report) -> Report:
    return msgspec.structs.replace(report, suppression=None)


def _plain(finding: Finding) -> Finding:
    if finding.suppressed is None and finding.baseline_state is None:
        return finding
    return msgspec.structs.replace(
        finding, suppressed=None, suppressed_by=None, baseline_state=None
    )


def _rebuilt(report: Report, findings: Sequence[Finding]) -> Report:
    """The report with other findings in the places of its own, in the order of `findings_of`."""
    rest = iter(findings)
    models = tuple(
        msgspec.structs.replace(model, findings=_take(rest, len(model.findings)))
        for model in report.models
    )
    source = report.source
    if source is not None:
        source = msgspec.structs.replace(source, findings=_take(rest, len(source.findings)))
    return msgspec.structs.replace(report, models=models, source=source, suppression=None)


def _take(findings: Iterator[Finding], number: int) -> tuple[Finding, ...]:
    return tuple(next(findings) for _ in range(number))
