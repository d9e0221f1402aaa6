"""Figures of whole steps: batch sizes, losses and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from scanner.records import Accumulated, BatchPoint, BatchSweep, Phase
from scanner.report.html.charts import LineChart, Series, bar, line_chart
from scanner.report.html.figure import Figure, basis_of
from scanner.report.words import bytes_text, count, seconds_text

__all__ = ["batch_figures", "step_figures"]

_LOSSES = {"device": "on the device", "cpu": "on the CPU", "raised": "in double precision"}


def batch_figures(sweep: BatchSweep) -> Iterator[Figure]:
    """Time by batch size and, where the device keeps an account, memory."""
    yield _batch_time(sweep)
    if any(point.peak_bytes is not None for point in sweep.points):
        yield _batch_memory(sweep)


def _batch_time(sweep: BatchSweep) -> Figure:
    title = "Time of a step by batch size"
    step = Series(
        name="a step",
        ys=tuple(point.step_s for point in sweep.points),
        band=tuple((point.p10_s, point.p90_s) for point in sweep.points),
    )
    return Figure(
        title=title,
        basis=basis_of(sweep.device),
        where=f"{sweep.device}; median, 10th to 90th percentile shaded",
        chart=line_chart(_by_batch(title, sweep, step, y_text=seconds_text)),
        columns=("batch", "a step", "10th to 90th percentile", "a sample"),
        rows=tuple(map(_times, sweep.points)),
        notes=tuple(_remarks(sweep)),
    )


def _times(point: BatchPoint) -> tuple[Any, ...]:
    return (
        point.batch,
        seconds_text(point.step_s),
        f"{seconds_text(point.p10_s)} to {seconds_text(point.p90_s)}",
        seconds_text(point.sample_s),
    )


def _remarks(sweep: BatchSweep) -> Iterator[str]:
    if len(sweep.points) > 1 and sweep.best is not None:
        yield f"batch {sweep.best} takes the least time a sample"
    if sweep.ended:
        yield f"ends there: {sweep.ended}"
    if sweep.incomplete:
        yield f"not known: {sweep.incomplete}"
    yield from sweep.notes


def _batch_memory(sweep: BatchSweep) -> Figure:
    title = "Peak memory by batch size"
    peaks = [point.peak_bytes for point in sweep.points]
    line = Series(name=title, ys=tuple(None if peak is None else float(peak) for peak in peaks))
    unit = _unit(max(peak or 0 for peak in peaks))
    return Figure(
        title=title,
        basis=basis_of(sweep.device),
        where=f"{sweep.device}; the most that was held after any op",
        chart=line_chart(_by_batch(title, sweep, line, y_text=bytes_text, unit=unit)),
        columns=("batch", "peak memory", "a sample"),
        rows=tuple(
            (point.batch, bytes_text(point.peak_bytes), bytes_text(point.sample_bytes))
            for point in sweep.points
        ),
    )


def _by_batch(title: str, sweep: BatchSweep, line: Series, **how: Any) -> LineChart:
    xs = tuple(str(point.batch) for point in sweep.points)
    return LineChart(title=title, xs=xs, x_title="batch size", series=(line,), **how)


def _unit(size: float) -> float:
    """What sizes are counted in, so that marks of an axis are round."""
    return next((float(1 << bits) for bits in (30, 20, 10) if size >= 1 << bits), 1.0)


def step_figures(run: Accumulated) -> Iterator[Figure]:
    """Losses, with what stands out, and the largest errors."""
    yield _losses(run)
    if run.worst:
        yield _errors(run)


def _losses(run: Accumulated) -> Figure:
    title = "Loss of each step"
    xs = tuple(str(step) for step in range(1, len(run.losses) + 1))
    series = tuple(
        Series(name=name, ys=tuple(getattr(loss, side) for loss in run.losses))
        for side, name in _LOSSES.items()
    )
    chart = LineChart(
        title=title, xs=xs, x_title="step", series=series, y_text="{:.6g}".format, from_zero=False
    )
    drawn = line_chart(chart)
    told = f"{count(run.steps, 'step')} of {run.asked} on {run.device}"
    return Figure(
        title=title,
        basis=basis_of(run.device),
        where=f"{told}; {run.compared:,} of {count(run.ops, 'op')} compared",
        chart=drawn,
        legend=tuple(_LOSSES.values()) if drawn else (),
        columns=("step", *_LOSSES.values()),
        rows=tuple(
            (step, *(_loss(getattr(loss, side)) for side in _LOSSES))
            for step, loss in zip(xs, run.losses, strict=True)
        ),
        notes=(*_notable(run), *run.notes),
        is_folded=True,
    )


def _notable(run: Accumulated) -> Iterator[str]:
    kinds = {
        "the op errs": run.first,
        "first NaN or infinity": run.first_nan,
        "drift": run.drift,
        "the run ends": run.ended,
    }
    for name, found in kinds.items():
        if found is not None:
            yield f"{name}: {found.op}, step {found.step}, {found.phase}: {found.message}"
    if run.incomplete:
        yield f"not known: {run.incomplete}"


def _loss(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.8g}"


def _errors(run: Accumulated) -> Figure:
    most = max(*run.worst.values(), 1.0)
    return Figure(
        title="Largest error by phase",
        basis=basis_of(run.device),
        where=f"{run.device}; in units of what is allowed, above 1 is too much",
        columns=("phase", "", "error"),
        rows=tuple(
            (phase, bar(error / most, "fill" if error <= 1 else "s-wrong"), f"{error:.3g}")
            for phase in get_args(Phase)
            if (error := run.worst.get(phase)) is not None
        ),
    )
