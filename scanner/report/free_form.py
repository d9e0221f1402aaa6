"""What the records leave open and yet must hold, checked when a report is read from a file.

Some parts of a report are plain data to the records: `OpReport.config`, `Measurement.detail`,
`ModelReport.time`. Renderers and rules rely on the shapes that opscan writes there. Whoever edits a
report, or cuts it, gets one error for it here and no `KeyError` later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from scanner.records import Measurement, ModelReport, OpReport, Report, Status, TensorSpec

__all__ = ["faults"]


class _Config(msgspec.Struct):
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    attributes: dict[str, Any] = {}
    values: dict[str, tuple[int, ...]] = {}


class _Side(msgspec.Struct):
    median_s: float


class _Device(_Side):
    first_s: float


class _Timing(msgspec.Struct):
    device: _Device
    cpu: _Side
    warning: str


class _Share(msgspec.Struct):
    device: float
    cpu_s: float
    device_s: float
    warning: str


class _Outcome(msgspec.Struct):
    status: Status


class _Fallback(msgspec.Struct):
    on: _Outcome | None = None


class _Detail(msgspec.Struct):
    timing: _Timing | None = None
    share: _Share | msgspec.UnsetType = msgspec.UNSET
    fallback: _Fallback | msgspec.UnsetType = msgspec.UNSET


class _Half(msgspec.Struct):
    device_s: float


class _Missing(msgspec.Struct):
    configurations: int
    calls: int


class _StepTime(msgspec.Struct):
    device_s: float
    cpu_s: float
    first_calls_s: float
    basis: str
    not_timed: _Missing
    autocast: dict[str, _Half] = {}


class _Environment(msgspec.Struct):
    notes: tuple[str, ...] = ()


def faults(report: Report) -> Iterator[str]:
    """What is wrong with a report whose records are sound: a line for each, with its place."""
    if not report.targets:
        yield "it names no target - at `$.targets`"
    yield from _fits(report.environment, _Environment, "$.environment")
    for position, model in enumerate(report.models):
        yield from _of_model(model, f"$.models[{position}]")


def _of_model(model: ModelReport, place: str) -> Iterator[str]:
    if model.time is not None:
        yield from _fits(model.time, _StepTime, f"{place}.time")
    for position, row in enumerate(model.ops):
        yield from _of_row(row, f"{place}.ops[{position}]")
    for position, order in enumerate(model.order):
        if not all(0 <= row < len(model.ops) for row in order.rows):
            yield f"it names an op that the model does not have - at `{place}.order[{position}]`"


def _of_row(row: OpReport, place: str) -> Iterator[str]:
    if not row.verdicts:
        yield f"it has no verdict - at `{place}.verdicts`"
    yield from _fits(row.config, _Config, f"{place}.config")
    for measurement in _measurements(row):
        yield from _fits(measurement.detail, _Detail, f"{place}: detail of {measurement.device}")


def _measurements(row: OpReport) -> Iterator[Measurement]:
    if row.measurement is not None:
        yield row.measurement
    yield from row.simulations.values()
    yield from (variant.measurement for variant in row.variants)


def _fits(data: Any, shape: type[msgspec.Struct], place: str) -> Iterator[str]:
    try:
        msgspec.convert(data, shape)
    except msgspec.ValidationError as error:
        yield (
            str(error).replace("`$", f"`{place}")
            if "`$" in str(error)
            else f"{error} - at `{place}`"
        )
