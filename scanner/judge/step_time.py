"""What the ops of a step take together, where each has been timed by itself.

Calls times median, added up. Ops of a real step overlap on a device and keep its caches warm, so
the sum is no prediction of the step; it says which ops matter, and which side is faster at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from scanner.judge.rows import worst_status
from scanner.records import OpReport

__all__ = ["device_seconds", "seconds_by_status", "step_time", "with_shares"]


def device_seconds(row: OpReport) -> float:
    """Seconds of all calls of a row on the device; 0 where it was not timed."""
    return _seconds(row, "device") or 0.0


def with_shares(rows: Sequence[OpReport], target: str) -> tuple[OpReport, ...]:
    """The rows that `target` dispatches with their share of its step, as detail `share`.

    It holds `device` and `cpu` (0 to 1, of what was timed), `device_s`, `cpu_s`, and the timing's
    `warning`.
    """
    timed = [row for row in rows if _dispatched(row, target)]
    totals = {side: sum(_seconds(row, side) or 0.0 for row in timed) for side in _SIDES}
    return tuple(_with_share(row, totals) if _dispatched(row, target) else row for row in rows)


def step_time(rows: Sequence[OpReport], target: str) -> dict[str, Any] | None:
    """`ModelReport.time`: the step of `target` on the device and on the CPU; None if none is timed.

    Rows that the device has not run or not timed are counted, not guessed at.
    """
    ran = [row for row in rows if row.measurement is not None and _dispatched(row, target)]
    timed = [row for row in ran if _seconds(row, "device") is not None]
    if not timed or timed[0].measurement is None:
        return None
    missing = [row for row in ran if _seconds(row, "device") is None]
    return {
        "device": timed[0].measurement.device,
        "device_s": sum(_seconds(row, "device") or 0.0 for row in timed),
        "cpu_s": sum(_seconds(row, "cpu") or 0.0 for row in timed),
        "first_calls_s": sum(_first_s(row) for row in timed),
        "basis": "sum of isolated ops; overlap not counted",
        "timed": {"configurations": len(timed), "calls": sum(row.calls for row in timed)},
        **_in_half(timed),
        "not_timed": {"configurations": len(missing), "calls": sum(row.calls for row in missing)},
    }


def seconds_by_status(rows: Sequence[OpReport], target: str) -> dict[str, float] | None:
    """Device seconds of the step of `target` by status; None if no row is timed."""
    spent: Counter[str] = Counter()
    for row in rows:
        if _dispatched(row, target) and (seconds := _seconds(row, "device")) is not None:
            spent[worst_status(row.verdicts)] += seconds  # type: ignore[assignment]
    return dict(spent) or None


def _in_half(timed: Sequence[OpReport]) -> dict[str, Any]:
    """The device's step with the variants of each dtype in place of what they are variants of.

    Casts between dtypes, which autocast adds, are not counted.
    """
    faster: dict[str, dict[str, float]] = {}
    for row in timed:
        for variant in row.variants:
            if variant.speedup is not None:
                seconds = device_seconds(row)
                step = faster.setdefault(variant.dtype, {"saved_s": 0.0, "configurations": 0})
                step["saved_s"] += seconds - seconds / variant.speedup
                step["configurations"] += 1
    total = sum(map(device_seconds, timed))
    steps = {
        dtype: {"device_s": total - each["saved_s"], "configurations": int(each["configurations"])}
        for dtype, each in faster.items()
    }
    return {"autocast": steps} if steps else {}


_SIDES = ("device", "cpu")


def _first_s(row: OpReport) -> float:
    """What a process waits for the first call of a row, mostly for shaders to be compiled."""
    assert row.measurement is not None
    device = row.measurement.detail["timing"]["device"]
    return float(device["first_s"])


def _dispatched(row: OpReport, target: str) -> bool:
    """Releases that lower a step otherwise have rows of their own, which must not count twice."""
    return any(verdict.target == target for verdict in row.verdicts)


def _with_share(row: OpReport, totals: dict[str, float]) -> OpReport:
    if row.measurement is None or _seconds(row, "device") is None:
        return row
    spent = {side: _seconds(row, side) or 0.0 for side in _SIDES}
    share = {
        **{side: spent[side] / totals[side] if totals[side] else 0.0 for side in _SIDES},
        **{f"{side}_s": spent[side] for side in _SIDES},
        "warning": row.measurement.detail["timing"]["warning"],
    }
    detail = {**row.measurement.detail, "share": share}
    measurement = msgspec.structs.replace(row.measurement, detail=detail)
    return msgspec.structs.replace(row, measurement=measurement)


def _seconds(row: OpReport, side: str) -> float | None:
    timing = row.measurement.detail.get("timing") if row.measurement is not None else None
    return row.calls * float(timing[side]["median_s"]) if timing else None
