"""Whole steps on a device, as the text report shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scanner.records import Accumulated, BatchPoint, BatchSweep, Divergence, Phase, StepLoss
from scanner.report.words import bytes_text, clean, count, place, seconds_text

__all__ = ["batch_lines", "step_lines"]

_KINDS = {
    "wrong": ("wrong", "bold red"),
    "nan": ("nan", "bold red"),
    "drift": ("drift", "yellow"),
    "raises": ("raises", "bold red"),
    "crash": ("crash", "bold red"),
    "hang": ("hang", "bold red"),
}
_MOST_LOSSES = 5
_NOISY = 0.10


def step_lines(run: Accumulated) -> Iterator[RenderableType]:
    """How far the steps went, their losses, and the ops that stand out."""
    head = Text(f"{count(run.steps, 'step')} of {run.asked} on {clean(run.device)}", "bold")
    head.append(f"  {count(run.ops, 'op')} run, {run.compared:,} compared", "dim not bold")
    yield head
    if any(loss.device is not None or loss.cpu is not None for loss in run.losses):
        yield _losses(run.losses)
    notable = list(_notable(run))
    for found in notable:
        yield from _divergence(found)
    if run.incomplete:
        yield Text(f"unknown: {clean(run.incomplete)}", "magenta")
    if run.compared:
        yield Text(_verdict(run, bool(notable)), "dim")


def _notable(run: Accumulated) -> Iterator[Divergence]:
    """What stands out; an op that makes NaN is past its tolerance for that alone."""
    spoilt = run.first_nan
    first = run.first
    if first and not (spoilt and (first.op, first.step) == (spoilt.op, spoilt.step)):
        yield first
    yield from (found for found in (spoilt, run.drift, run.ended) if found)


def _verdict(run: Accumulated, notable: bool) -> str:
    worst = ", ".join(f"{phase} {share:.2g}" for phase, share in _ordered(run.worst))
    told = f"largest error in units of what is allowed: {worst}"
    return told if notable else f"no op is past its tolerance; {told}"


def _ordered(worst: dict[str, float]) -> list[tuple[str, float]]:
    return [(phase, worst[phase]) for phase in get_args(Phase) if phase in worst]


def _losses(losses: tuple[StepLoss, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    table.add_column("step", justify="right", style="dim")
    for name in ("loss on the device", "on the CPU", "in double precision"):
        table.add_column(name, justify="right")
    half = _MOST_LOSSES // 2
    for number, loss in enumerate(losses, 1):
        if len(losses) > _MOST_LOSSES and half < number <= len(losses) - half:
            continue
        table.add_row(str(number), *map(_number, (loss.device, loss.cpu, loss.raised)))
    return table


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.8g}"


def _divergence(found: Divergence) -> Iterator[Text]:
    word, style = _KINDS[found.kind]
    line = Text.assemble((f"{word:<7}", style), (clean(found.op), "bold"))
    line.append(f"  step {found.step}, {found.phase}", "not bold")
    yield line
    if found.location is not None:
        where = Text(f"       {place(found.location)}", no_wrap=True, overflow="ellipsis")
        where.append(f"  {clean(found.location.code)}", "italic")
        yield where
    yield Text(f"       {clean(found.message)}")


def batch_lines(sweep: BatchSweep) -> Iterator[RenderableType]:
    """Time and memory by batch size."""
    yield Text(f"batch sizes on {clean(sweep.device)}", "bold")
    if sweep.points:
        yield _table(sweep)
    if sweep.ended:
        yield Text(f"ends there: {clean(sweep.ended)}", "yellow")
    if sweep.incomplete:
        yield Text(f"unknown: {clean(sweep.incomplete)}", "magenta")
    for note in sweep.notes:
        yield Text(clean(note), "dim")
    if sweep.points:
        yield Text("the ops of one step are played on the device, call after call", "dim")


def _table(sweep: BatchSweep) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    memory = any(point.peak_bytes is not None for point in sweep.points)
    names = ["batch", "a step", "p10 to p90", "a sample"]
    for name in [*names, *(["peak memory", "a sample"] if memory else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for point in sweep.points:
        figures = _figures(point, memory)
        table.add_row(*figures, _remark(point, sweep), style="bold" if _best(point, sweep) else "")
    return table


def _figures(point: BatchPoint, memory: bool) -> list[str]:
    spread = f"{seconds_text(point.p10_s)} to {seconds_text(point.p90_s)}"
    row = [str(point.batch), seconds_text(point.step_s), spread, seconds_text(point.sample_s)]
    if memory:
        row += [bytes_text(point.peak_bytes), bytes_text(point.sample_bytes)]
    return row


def _best(point: BatchPoint, sweep: BatchSweep) -> bool:
    return len(sweep.points) > 1 and point.batch == sweep.best


def _remark(point: BatchPoint, sweep: BatchSweep) -> Text:
    remark = Text("least time a sample" if _best(point, sweep) else "", "green")
    if point.spread > _NOISY:
        remark.append("  timings vary much" if remark else "timings vary much", "yellow")
    return remark
