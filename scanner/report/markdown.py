"""A summary for `$GITHUB_STEP_SUMMARY`, merge requests and chats: GitHub's Markdown.

A step's summary may have 1 MiB (docs.github.com, "Workflow commands"); the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from scanner.records import ModelReport, Report
from scanner.report.found import Found, active_of, findings_of, worst_first
from scanner.report.interface import Style
from scanner.report.words import clean, count, join, place, short_target
from scanner.statuses import SEVERITY_ORDER

__all__ = ["MAX_BYTES", "render"]

MAX_BYTES = 1_000_000
"""Somewhat less than 1 MiB, since other steps' words may stand in the same file."""
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "\\`*_[]<>|~&$@#"}


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """Totals, a table of models, findings by rule."""
    lines: list[str] = []
    used = 0
    parts = [*_head(report), *_models(report), *_findings(report)]
    for number, part in enumerate(parts):
        used += len(part.encode()) + 1
        if used > MAX_BYTES - 200:
            left = count(len(parts) - number, "line")
            lines += ["", f"**Cut off here: {left} more. The other formats have everything.**"]
            break
        lines.append(part)
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that no reader of Markdown takes for markup."""
    return clean(text).translate(_MARKS)


def _code(text: str) -> str:
    return f"<code>{_plain(text)}</code>"


def _head(report: Report) -> Iterator[str]:
    summary = report.summary
    found = [
        count(summary.errors, "error"),
        count(summary.warnings, "warning"),
        count(summary.notes, "note"),
    ]
    hidden = sum(1 for each in findings_of(report) if each.finding.suppressed)
    accepted = f" Accepted before: {hidden}." if hidden else ""
    yield f"## opscan: {join(found)}"
    yield ""
    if not summary.complete:
        yield "**Incomplete: not everything was judged, and nothing is known about the rest.**"
        yield ""
    targets = (
        join(_plain(short_target(target)) for target in report.targets) if report.targets else ""
    )
    yield f"Judged for {targets}.{accepted}" if targets else f"Source rules.{accepted}"
    yield ""
    if report.source is not None:
        yield f"{count(report.source.files, 'source file')} read."
        yield ""


def _models(report: Report) -> Iterator[str]:
    if not report.models:
        return
    yield "| model | source | mode | configurations | by status |"
    yield "|---|---|---|---:|---|"
    yield from map(_row, report.models)
    yield ""


def _row(model: ModelReport) -> str:
    by_status = model.coverage.by_config
    shown = ", ".join(f"{by_status[name]} {name}" for name in SEVERITY_ORDER if name in by_status)
    captured = shown if model.capture is not None else "**not captured**"
    cells = (_plain(model.name), _code(model.source), _plain(model.mode), str(len(model.ops)))
    return f"| {' | '.join(cells)} | {captured or 'none'} |"


def _findings(report: Report) -> Iterator[str]:
    groups: dict[str, list[Found]] = {}
    for each in worst_first(active_of(report)):
        groups.setdefault(each.finding.rule, []).append(each)
    several = len(report.targets) > 1
    for rule, found in groups.items():
        yield f"### {_plain(rule)} ({count(len(found), 'finding')})"
        yield ""
        for each in found:
            yield _item(each, several=several)
        yield ""


def _item(found: Found, *, several: bool) -> str:
    finding = found.finding
    where = place(finding.location) if finding.location else found.file
    target = f" [{finding.target}]" if several and finding.target else ""
    place_text = f" {_code(where)}" if where else ""
    parts = [f"- **{finding.severity}**{place_text} {_plain(finding.message + target)}"]
    if finding.location and finding.location.code:
        parts.append(_code(finding.location.code))
    if finding.remedy:
        parts.append(_plain(finding.remedy))
    return "<br>".join(parts)
