"""What the user has accepted, and what is stale about it, in the text report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.text import Text

from scanner.records import Finding, Report
from scanner.report.found import findings_of
from scanner.report.words import clean, place

__all__ = ["STYLES", "accepted_lines", "accepted_text", "stale_lines"]

STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
"""Severity → rich style."""


def accepted_text(report: Report) -> str:
    """`; 3 ignored, 2 known, 1 new`: the end of the summary line, empty when nothing is."""
    found = [each.finding for each in findings_of(report)]
    by = Counter(
        "known" if each.suppressed_by == "baseline" else "ignored"
        for each in found
        if each.suppressed
    )
    parts = [f"{by[word]:,} {word}" for word in ("ignored", "known") if by[word]]
    states = Counter(each.baseline_state for each in found)
    if states["new"] or states["unchanged"]:
        parts.append(f"{states['new']:,} new")
    return f"; {', '.join(parts)}" if parts else ""


def accepted_lines(findings: Iterable[Finding]) -> Iterator[Text]:
    """`OPS102 ignored: once an epoch`: each rule and reason once."""
    lines = {(each.rule, _how(each), each.suppressed) for each in findings if each.suppressed}
    for rule, how, reason in sorted(lines):
        yield Text(f"{rule} {how}: {clean(reason)}", "dim")


def stale_lines(finding: Finding) -> Iterator[Text]:
    """A finding about an ignore or a baseline, and what to do about it."""
    where = f"{place(finding.location)}: " if finding.location else ""
    head = Text.assemble("  ", (f"{finding.severity} ", STYLES[finding.severity]))
    yield head.append(f"{finding.rule} {where}{clean(finding.message)}")
    yield Text(f"    -> {clean(finding.remedy)}")


def _how(finding: Finding) -> str:
    return "known" if finding.suppressed_by == "baseline" else "ignored"
