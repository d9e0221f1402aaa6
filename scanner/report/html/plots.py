"""Figures of cost and memory: only what the report has, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from scanner.records import ModelReport, OpReport
from scanner.report.html.charts import bar
from scanner.report.html.details import number, seconds_of
from scanner.report.html.figure import Figure, basis_of
from scanner.report.html.whole_plots import batch_figures, step_figures
from scanner.report.words import bytes_text, count, seconds_text

__all__ = ["figures"]

_Row: TypeAlias = tuple[Any, ...]

_MOST_OPS = 15


def figures(model: ModelReport) -> Iterator[Figure]:
    """All figures of a model: time, what it is spent on, whole steps, batch sizes, memory."""
    if model.time:
        yield _step(model.time)
    if any(seconds_of(row)[0] for row in model.ops):
        yield _longest(model.ops, str((model.time or {}).get("device", "")))
    if model.coverage.by_time:
        yield _by_status(model.coverage.by_time, str((model.time or {}).get("device", "")))
    if any(_estimated(row) for row in model.ops):
        yield _estimates(model.ops)
    if model.batches is not None:
        yield from batch_figures(model.batches)
    if model.accumulated is not None:
        yield from step_figures(model.accumulated)
    if model.memory:
        yield _memory(model.memory)


def _step(time: Mapping[str, Any]) -> Figure:
    """`ModelReport.time`; an entry without a device is an estimate."""
    device = str(time.get("device", ""))
    amounts = [
        ("a step on the device", number(time, "device_s")),
        ("a step on the CPU", number(time, "cpu_s")),
        ("first calls on the device", number(time, "first_calls_s")),
    ]
    halves = time.get("autocast")
    amounts += [
        (f"with autocast to {dtype}", number(time, "autocast", dtype, "device_s"))
        for dtype in (sorted(halves) if isinstance(halves, Mapping) else ())
    ]
    missing = number(time, "not_timed", "configurations") or 0
    notes = [f"without {count(int(missing), 'configuration')} that could not be timed"]
    return Figure(
        title="Time of a step",
        basis=basis_of(device) if device else "estimated",
        where="; ".join(part for part in (device, str(time.get("basis", ""))) if part),
        columns=("what", "", "time"),
        rows=_bars([(name, value) for name, value in amounts if value is not None]),
        notes=tuple(notes) if missing else (),
    )


def _bars(amounts: Sequence[tuple[Any, ...]], kinds: Sequence[str] = ()) -> tuple[_Row, ...]:
    """Name, bar, seconds and further cells, from name, seconds and further cells."""
    most = max((value for _, value, *_ in amounts), default=0.0) or 1.0
    kinds = kinds or ["fill"] * len(amounts)
    return tuple(
        (name, bar(value / most, kind), seconds_text(value), *more)
        for (name, value, *more), kind in zip(amounts, kinds, strict=True)
    )


def _longest(ops: Sequence[OpReport], device: str) -> Figure:
    timed = [(row, *seconds_of(row)) for row in ops]
    ranked = sorted(
        ((row, device_s, cpu_s) for row, device_s, cpu_s in timed if device_s),
        key=lambda one: -one[1],
    )
    total = sum(device_s for _, device_s, _ in ranked)
    rows = [
        (
            f"{row.op} · {row.phase}",
            device_s,
            f"{device_s / total:.1%}",
            seconds_text(cpu_s) if cpu_s else "",
        )
        for row, device_s, cpu_s in ranked[:_MOST_OPS]
    ]
    hidden = len(ranked) - len(rows)
    return Figure(
        title="What a step spends its time on",
        basis=basis_of(device),
        where=f"{device}; each op by itself, calls times median",
        columns=("op", "", "time", "share", "on the CPU"),
        rows=_bars(rows),
        notes=(f"{count(hidden, 'configuration')} that take less are in the table",)
        if hidden > 0
        else (),
    )


def _by_status(by_time: Mapping[str, float], device: str) -> Figure:
    total = sum(by_time.values()) or 1.0
    ranked = sorted(by_time.items(), key=lambda one: (-one[1], one[0]))
    rows = [(status, seconds, f"{seconds / total:.1%}") for status, seconds in ranked]
    return Figure(
        title="Time by status",
        basis=basis_of(device),
        where=f"{device}; statuses are the target's",
        columns=("status", "", "time", "share"),
        rows=_bars(rows, [f"s-{status}" for status, _ in ranked]),
    )


def _estimated(row: OpReport) -> float | None:
    return number(row.estimate, "device_s")


def _estimates(ops: Sequence[OpReport]) -> Figure:
    ranked = sorted(
        ((row, seconds) for row in ops if (seconds := _estimated(row)) is not None),
        key=lambda one: -one[1],
    )
    return Figure(
        title="What a step would spend its time on",
        basis="estimated",
        where="by the cost model; nothing was run",
        columns=("op", "", "time"),
        rows=_bars([(f"{row.op} · {row.phase}", value) for row, value in ranked[:_MOST_OPS]]),
    )


def _memory(memory: Mapping[str, Any]) -> Figure:
    """Figures by name; sizes are those whose name ends in `_bytes`."""
    basis = str(memory.get("basis", "")) or "as the report says"
    device = str(memory.get("device", ""))
    sizes = {
        name: size
        for name in memory
        if name.endswith("_bytes") and (size := number(memory, name)) is not None
    }
    most = max(sizes.values(), default=0.0) or 1.0
    rows = [
        (_words(name.removesuffix("_bytes")), bar(size / most, "fill"), bytes_text(size))
        for name, size in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))
    ]
    return Figure(
        title="Memory",
        basis=basis_of(device) if device else "estimated",
        where="; ".join(part for part in (device, basis) if part),
        columns=("what", "", "size"),
        rows=tuple(rows),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")
