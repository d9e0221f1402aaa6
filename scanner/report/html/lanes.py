"""The calls of a step in order, each in the lane of the device that it runs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from scanner.records import ModelReport, OpReport, Status, Verdict
from scanner.report.html.views import View, seen

__all__ = [
    "LANES",
    "LANE_OF",
    "Lane",
    "Run",
    "Walk",
    "lane_of",
    "runs",
    "switches",
    "walk",
    "without_host",
]

Lane: TypeAlias = Literal["gpu", "cpu", "host", "stops", "unknown"]

LANES: dict[Lane, str] = {
    "gpu": "GPU",
    "cpu": "CPU, as a fallback",
    "host": "CPU, as the code asks",
    "stops": "does not run",
    "unknown": "not known",
}
"""Lane → its name, from top to bottom."""

LANE_OF: dict[Status, Lane] = {
    "native": "gpu",
    "composite": "gpu",
    "slow": "gpu",
    "wrong": "gpu",
    "nan": "gpu",
    "fallback": "cpu",
    "skipped": "host",
    "unsupported": "stops",
    "crash": "stops",
    "unknown": "unknown",
}
"""Status on a target → where the call runs. Only tensors that the code keeps on the CPU are
skipped by a verdict."""


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A step as one view sees it."""

    calls: tuple[int, ...]
    """Row of each call, an index into `ModelReport.ops`."""
    is_ordered: bool
    """False where the report has no order: each row's calls then stand together, in the order in
    which the rows were first executed."""


class Run(NamedTuple):
    """Neighbouring calls of one lane."""

    lane: Lane
    first: int
    """Index of a call, from 0."""
    calls: tuple[int, ...]
    """Rows."""


def walk(model: ModelReport, view: View) -> Walk:
    """The calls that the view dispatches."""
    shown = {row for row, each in enumerate(model.ops) if seen(each, view) is not None}
    for order in model.order:
        if (view.id in order.targets or view.is_device) and shown & set(order.rows):
            calls = tuple(row for row in order.rows if row in shown)
            return Walk(calls=calls, is_ordered=_is_whole(calls, model.ops, shown))
    calls = tuple(row for row in sorted(shown) for _ in range(model.ops[row].calls))
    return Walk(calls=calls, is_ordered=False)


def _is_whole(calls: Sequence[int], ops: Sequence[OpReport], shown: set[int]) -> bool:
    return len(calls) == sum(ops[row].calls for row in shown)


def lane_of(verdict: Verdict, view: View) -> Lane:
    """A device skips what it was not run with; a target, what stays on the CPU."""
    if view.is_device and verdict.status == "skipped":
        return "unknown"
    return LANE_OF[verdict.status]


def runs(calls: Sequence[int], lanes: Sequence[Lane]) -> Iterator[Run]:
    """Longest stretches of one lane; `lanes` are those of `calls`."""
    first = 0
    for lane, group in groupby(range(len(calls)), lambda call: lanes[call]):
        length = sum(1 for _ in group)
        yield Run(lane, first, tuple(calls[first : first + length]))
        first += length


def without_host(lanes: Sequence[Lane]) -> list[Lane]:
    """Calls that the code keeps on the CPU in the lane of the call before, the first ones in that
    of the call after: they interrupt nothing."""
    current: Lane = next((lane for lane in lanes if lane != "host"), "host")
    kept: list[Lane] = []
    for lane in lanes:
        current = current if lane == "host" else lane
        kept.append(current)
    return kept


def switches(lanes: Sequence[Lane]) -> int:
    """How often data move between GPU and CPU because of a fallback; other lanes move none."""
    moving = [lane for lane, _ in groupby(lane for lane in lanes if lane in {"gpu", "cpu"})]
    return max(len(moving) - 1, 0)
