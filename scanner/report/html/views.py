"""Who is looked at: the targets of a report, and devices that are none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scanner.records import Measurement, ModelReport, OpReport, Report, Verdict
from scanner.report.words import short_target

__all__ = ["View", "seen", "views_of"]

_DEVICE = "device="


class View(NamedTuple):
    """One column of the report."""

    id: str
    """`Target.id`, or `device=` and what a device calls itself."""
    label: str
    is_device: bool = False


def views_of(report: Report) -> tuple[View, ...]:
    """Targets in their order, then devices that were run and are none of them."""
    targets = [View(target.id, short_target(target)) for target in report.targets]
    devices = dict.fromkeys(
        measurement.device for model in report.models for measurement in _apart(model)
    )
    return (*targets, *(View(_DEVICE + name, name, is_device=True) for name in devices))


def seen(row: OpReport, view: View) -> Verdict | None:
    """What is known of a row there; None where the row is not dispatched or was not run."""
    if not view.is_device:
        return next((each for each in row.verdicts if each.target == view.id), None)
    measurement = row.measurement
    if measurement is None or _DEVICE + measurement.device != view.id or _is_told(row):
        return None
    return Verdict(
        target=view.id,
        status=measurement.status,
        evidence="measured",
        reason=str(measurement.detail.get("reason", "")),
    )


def _apart(model: ModelReport) -> Iterator[Measurement]:
    """Measurements that no verdict tells."""
    return (
        row.measurement for row in model.ops if row.measurement is not None and not _is_told(row)
    )


def _is_told(row: OpReport) -> bool:
    return any(verdict.evidence == "measured" for verdict in row.verdicts)
