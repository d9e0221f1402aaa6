"""One finding a line: `file:line: OPS101 error message`, as compilers print them."""

from __future__ import annotations

from scanner.records import Report
from scanner.report.found import Found, findings_of
from scanner.report.interface import Style
from scanner.report.words import clean, place

__all__ = ["render"]


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """Findings in the order of the report; empty when there are none."""
    lines = [
        _line(found, several=len(report.targets) > 1)
        for found in findings_of(report)
        if not found.finding.suppressed
    ]
    return "".join(f"{line}\n" for line in lines)


def _line(found: Found, *, several: bool) -> str:
    finding = found.finding
    where = place(finding.location) if finding.location else found.file
    target = f" [{finding.target}]" if several and finding.target else ""
    return clean(f"{where}: {finding.rule} {finding.severity} {finding.message}{target}")
