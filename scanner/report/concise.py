"""One finding a line: `file:line: OPS101 error message`, as compilers print them."""

from __future__ import annotations

from scanner.records import Finding, ModelReport, Report
from scanner.report.interface import Style
from scanner.report.words import clean, place

__all__ = ["render"]


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """Findings in the order of the report; empty when there are none."""
    lines = [
        _line(finding, model, several=len(report.targets) > 1)
        for model in report.models
        for finding in model.findings
        if not finding.suppressed
    ]
    return "".join(f"{line}\n" for line in lines)


def _line(finding: Finding, model: ModelReport, *, several: bool) -> str:
    where = place(finding.location) if finding.location else model.source
    target = f" [{finding.target}]" if several and finding.target else ""
    return clean(f"{where}: {finding.rule} {finding.severity} {finding.message}{target}")
