"""Findings for the page: one entry for what is said of several places and targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from scanner.records import Finding, Location, Report
from scanner.registry import RULES
from scanner.report.found import findings_of
from scanner.rule import Documented

__all__ = ["Entry", "Section", "Spot", "rules_in", "sections"]

_ORDER = ("error", "warning", "note")
_ACCEPTED = {
    "line": "Ignored by a comment",
    "settings": "Ignored in the settings",
    "baseline": "Known before",
    None: "Suppressed",
}


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One place that an entry is about."""

    location: Location | None
    targets: tuple[str, ...]
    calls: int
    """Of the target that makes most of them."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Findings that differ in place and target only."""

    finding: Finding
    """The first of them."""
    rule_name: str
    spots: tuple[Spot, ...]

    @property
    def accepted(self) -> str:
        """How it was suppressed, if it was."""
        return _ACCEPTED[self.finding.suppressed_by]

    @property
    def calls(self) -> int:
        """Of all places together."""
        return sum(spot.calls for spot in self.spots)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Findings about one model, or about source files."""

    title: str
    source: str
    active: tuple[Entry, ...]
    suppressed: tuple[Entry, ...]


def sections(report: Report) -> list[Section]:
    """A section for each model that has findings, in order, then source files, then ignores and
    baselines."""
    found = [(model.name, model.source, model.findings) for model in report.models]
    found.append(("Source files", "", report.source.findings if report.source else ()))
    stale = report.suppression.findings if report.suppression else ()
    found.append(("Ignores and baselines", "", stale))
    return [_section(*each) for each in found if each[2]]


def rules_in(report: Report) -> list[Documented]:
    """The rules that the report has findings of, by id."""
    ids = {found.finding.rule for found in findings_of(report)}
    return [RULES[rule] for rule in sorted(ids) if rule in RULES]


def _section(title: str, source: str, findings: Sequence[Finding]) -> Section:
    return Section(
        title=title,
        source=source,
        active=tuple(_entries(each for each in findings if not each.suppressed)),
        suppressed=tuple(_entries(each for each in findings if each.suppressed)),
    )


def _entries(findings: Iterable[Finding]) -> Iterator[Entry]:
    """Worst severity first, else in the order of the report."""
    groups: dict[Finding, list[Finding]] = {}
    for finding in findings:
        bare = msgspec.structs.replace(
            finding, target="", location=None, fingerprint="", calls=0, dtypes=()
        )
        groups.setdefault(bare, []).append(finding)
    for same in sorted(groups.values(), key=lambda group: _ORDER.index(group[0].severity)):
        rule = RULES.get(same[0].rule)
        yield Entry(
            finding=same[0],
            rule_name=rule.name if rule else "",
            spots=tuple(_spots(same)),
        )


def _spots(findings: Iterable[Finding]) -> Iterator[Spot]:
    spots: dict[Location | None, dict[str, int]] = {}
    for finding in findings:
        calls = spots.setdefault(finding.location, {})
        calls[finding.target] = calls.get(finding.target, 0) + finding.calls
    for location, calls in spots.items():
        targets = tuple(target for target in calls if target)
        yield Spot(location=location, targets=targets, calls=max(calls.values()))
