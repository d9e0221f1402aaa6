"""The findings of a report, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scanner.records import Finding, ModelReport, Report

__all__ = ["Found", "findings_of"]


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
