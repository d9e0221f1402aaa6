"""What JUnit calls a test: a configuration on a target, or a finding that is about none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from scanner.records import Finding, ModelReport, OpReport, Report, Verdict
from scanner.report.found import UNJUDGED, Found, findings_of
from scanner.report.words import inputs_text, place

__all__ = ["Case", "cases_for"]

_FINE = frozenset({"native", "composite"})
_UNPROVEN = frozenset({"unknown", "skipped"})


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test case."""

    group: str
    """The model or file."""
    name: str
    result: Literal["passed", "failure", "error", "skipped"]
    kind: str = ""
    """The rule or status."""
    message: str = ""
    details: str = ""


def cases_for(report: Report, about: Callable[[str], bool], target: str | None) -> Iterator[Case]:
    """Cases of the configurations on `target` (None: no configurations), then the findings that
    no configuration carries and whose target `about` accepts."""
    carried: set[int] = set()
    for model in report.models:
        mine = [each for each in model.findings if about(each.target)]
        for row in model.ops:
            for verdict in row.verdicts:
                if verdict.target == target:
                    same = [each for each in mine if _is_about(each, row)]
                    carried.update(map(id, same))
                    yield _of_row(model, row, verdict, same)
    for found in findings_of(report):
        if about(found.finding.target) and id(found.finding) not in carried:
            yield _of_finding(found)


def _is_about(finding: Finding, row: OpReport) -> bool:
    if finding.op not in {row.op, row.via} or not finding.op:
        return False
    dtypes = {spec["dtype"] for spec in row.config.get("inputs", ())}
    if finding.dtypes and not set(finding.dtypes) <= dtypes:
        return False
    return finding.location in row.locations or (finding.location is None and not row.locations)


def _of_row(
    model: ModelReport, row: OpReport, verdict: Verdict, findings: Sequence[Finding]
) -> Case:
    group, name = model.name, f"{row.op}({inputs_text(row.config)}) {row.phase}"
    loud = [each for each in findings if each.severity != "note"]
    active = [each for each in loud if not each.suppressed]
    if active:
        return _told(group, name, "failure", active)
    if loud:
        return _accepted(group, name, loud[0])
    if verdict.status in _UNPROVEN:
        return _by_verdict(group, name, verdict)
    if findings and verdict.status not in _FINE:
        return _noted(group, name, findings[0])
    if verdict.status in _FINE:
        details = "\n".join(each.message for each in findings)
        return Case(group=group, name=name, result="passed", details=details)
    return _by_verdict(group, name, verdict)  # reported where it begins, at another op


def _of_finding(found: Found) -> Case:
    finding = found.finding
    group = found.model.name if found.model else found.file or "opscan"
    where = place(finding.location) if finding.location else found.file
    name = f"{finding.rule} {finding.op} {where}".replace("  ", " ").strip()
    if finding.rule in UNJUDGED:
        return _told(group, name, "error", [finding])
    if finding.suppressed:
        return _accepted(group, name, finding)
    if finding.severity == "note":
        return Case(group=group, name=name, result="passed", details=finding.message)
    return _told(group, name, "failure", [finding])


def _told(
    group: str, name: str, result: Literal["failure", "error"], findings: Sequence[Finding]
) -> Case:
    return Case(
        group=group,
        name=name,
        result=result,
        kind=findings[0].rule,
        message=findings[0].message,
        details="\n".join(map(_details, findings)),
    )


def _details(finding: Finding) -> str:
    where = place(finding.location) if finding.location else ""
    parts = (f"{finding.rule} {finding.severity} {where}".strip(), finding.message, finding.remedy)
    return "\n".join(part for part in (*parts, *finding.links) if part)


def _accepted(group: str, name: str, finding: Finding) -> Case:
    message = f"accepted: {finding.suppressed}"
    return Case(group=group, name=name, result="skipped", kind=finding.rule, message=message)


def _noted(group: str, name: str, finding: Finding) -> Case:
    """Not fine, and not sure or bad enough to fail."""
    return Case(
        group=group, name=name, result="skipped", kind=finding.rule, message=finding.message
    )


def _by_verdict(group: str, name: str, verdict: Verdict) -> Case:
    if verdict.status == "unknown":
        message = f"not judged: {verdict.reason}"
        return Case(group=group, name=name, result="error", kind="unknown", message=message)
    reason = verdict.reason
    return Case(group=group, name=name, result="skipped", kind=verdict.status, message=reason)
