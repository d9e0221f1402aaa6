"""Workflow commands of GitHub Actions, which shows them beside the lines that they are about.

A step shows ten annotations of each kind, so the ten worst of each are written, then a notice with
what is missing.
Source: docs.github.com, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from scanner.records import Location, Report
from scanner.report.found import UNJUDGED, Found, active_of
from scanner.report.interface import Style
from scanner.report.words import clean, count, join

__all__ = ["render"]

_SHOWN = 10
"""Annotations of one kind in one step."""
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {**_DATA, **str.maketrans({":": "%3A", ",": "%2C"})}


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - one signature for all formats
    """Annotations, errors first; empty when there is nothing to say."""
    active = active_of(report)
    several = len(report.targets) > 1
    lines = [
        _annotation(each, several=several)
        for kind in ("error", "warning")
        for each in [found for found in active if found.finding.severity == kind][:_SHOWN]
    ]
    lines += _notice(report, active)
    return "".join(f"{line}\n" for line in lines)


def _annotation(found: Found, *, several: bool) -> str:
    finding = found.finding
    target = f" [{finding.target}]" if several and finding.target else ""
    parts = [clean(part) for part in (finding.message + target, finding.remedy) if part]
    properties = {"title": f"opscan ({finding.rule})", **_where(found)}
    return _command(finding.severity, properties, "\n".join(parts))


def _where(found: Found) -> dict[str, str]:
    if not found.file:
        return {}
    location = found.finding.location
    return {"file": found.file, **(_lines(location) if location and location.line > 0 else {})}


def _lines(location: Location) -> dict[str, str]:
    """GitHub drops annotations that have columns and span lines."""
    end = location.end_line or location.line
    where = {"line": str(location.line), "endLine": str(end)}
    if location.column is not None and end == location.line:
        where["col"] = str(location.column)
        if location.end_column is not None:
            where["endColumn"] = str(location.end_column)
    return where


def _notice(report: Report, active: list[Found]) -> list[str]:
    """One for all that has no annotation; none when there is no such thing."""
    kinds = Counter(each.finding.severity for each in active)
    unjudged = sum(each.finding.rule in UNJUDGED for each in active)
    missing = {
        "more error": kinds["error"] - _SHOWN,
        "more warning": kinds["warning"] - _SHOWN,
        "note": kinds["note"] - unjudged,
        "problem of the scan": unjudged,
    }
    said = [_counted(number, noun) for noun, number in missing.items() if number > 0]
    text = f"Not annotated: {join(said)}. " if said else ""
    if not report.summary.complete:
        text += "The scan is incomplete: not everything was judged. "
    if not text:
        return []
    return [_command("notice", {"title": "opscan"}, f"{text}See the full report.")]


def _counted(number: int, noun: str) -> str:
    if noun.startswith("problem"):
        return count(number, "problem") + " of the scan"
    return count(number, noun)


def _command(kind: str, properties: Mapping[str, str], text: str) -> str:
    listed = ",".join(
        f"{key}={clean(each).translate(_PROPERTY)}" for key, each in properties.items()
    )
    return f"::{kind} {listed}::{text.translate(_DATA)}"
