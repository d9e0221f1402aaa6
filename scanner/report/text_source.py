"""Findings about source code in the text report, file by file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scanner.records import Finding, SourceScan
from scanner.report.text_accepted import STYLES, accepted_lines
from scanner.report.words import clean

__all__ = ["source_lines"]


def source_lines(source: SourceScan, *, verbose: bool) -> Iterator[RenderableType]:
    """A heading for each file, and below it what was found, by line; with `verbose` also what
    is ignored or known."""
    shown = [each for each in source.findings if verbose or not each.suppressed]
    for file, findings in groupby(shown, key=lambda each: each.location and each.location.file):
        yield ""
        yield Text(clean(file or ""), "bold")
        yield _table(list(findings))


def _table(findings: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        severity = Text(finding.severity, STYLES[finding.severity])
        table.add_row(f"  {_at(finding)}", severity, Group(*_told(finding)))
    return table


def _at(finding: Finding) -> str:
    place = finding.location
    if place is None:
        return ""
    return f"{place.line}:{place.column}" if place.column else f"{place.line}"


def _told(finding: Finding) -> Iterator[Text]:
    yield Text.assemble((f"{finding.rule} ", "bold"), clean(finding.message))
    if finding.location and finding.location.code:
        yield Text(clean(finding.location.code), "italic", no_wrap=True, overflow="ellipsis")
    if finding.suppressed:
        yield from accepted_lines([finding])
    elif finding.remedy:
        yield Text(f"-> {clean(finding.remedy)}")
