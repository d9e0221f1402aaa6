"""The findings of a report, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scanner.records import Finding, ModelReport, Report

__all__ = ["UNJUDGED", "Found", "active_of", "findings_of", "worst_first"]

UNJUDGED = frozenset({"OPS901", "OPS902", "OPS903", "OPS904", "OPS906"})
"""Rules about what opscan could not judge, in whole or in part."""
_ORDER = {"error": 0, "warning": 1, "note": 2}


class Found(NamedTuple):
    """A finding and the model that it is about; None for one about source code or an ignore."""

    finding: Finding
    model: ModelReport | None

    @property
    def file(self) -> str:
        """The file to show it in: its location's, else the model's source; empty for neither."""
        if self.finding.location is not None:
            return self.finding.location.file
        return self.model.source if self.model else ""


def findings_of(report: Report) -> Iterator[Found]:
    """Findings of the models in their order, then those of source files, suppressed ones too, then
    those about ignores and baselines."""
    for model in report.models:
        for finding in model.findings:
            yield Found(finding, model)
    for finding in report.source.findings if report.source else ():
        yield Found(finding, None)
    for finding in report.suppression.findings if report.suppression else ():
        yield Found(finding, None)


def active_of(report: Report) -> list[Found]:
    """Findings that count: neither ignored nor in a baseline."""
    return [each for each in findings_of(report) if not each.finding.suppressed]


def worst_first(found: Iterable[Found]) -> list[Found]:
    """Errors, warnings, notes; in the given order among equals."""
    return sorted(found, key=lambda each: _ORDER[each.finding.severity])
