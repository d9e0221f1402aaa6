"""The report for a person at a terminal: one summary line, then each model, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scanner.records import Coverage, ModelReport, Report, Target
from scanner.report.blocks import STATUS_STYLES, Block, blocks
from scanner.report.evidence import evidence_text, unanswered
from scanner.report.interface import Style
from scanner.report.text_accepted import accepted_text, stale_lines
from scanner.report.text_rows import block_table
from scanner.report.text_source import source_lines
from scanner.report.text_time import step_text
from scanner.report.text_whole import batch_lines, step_lines
from scanner.report.words import clean, count, join, short_target
from scanner.statuses import SEVERITY_ORDER

__all__ = ["render"]

_METHODS = {
    "meta": "recorded on meta tensors: no memory, no values",
    "fake": "recorded on fake tensors: no memory, no values",
    "real": "run with real values on the CPU",
    "export": "exported with torch.export",
    "symbolic": "traced symbolically",
}
_INDENT = 2


def render(report: Report, style: Style) -> str:
    """The report as text, wrapped to `style.width` columns."""
    console = Console(
        file=StringIO(),
        width=style.width,
        force_terminal=style.color,
        color_system="standard" if style.color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for part in _parts(report, style):
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _parts(report: Report, style: Style) -> Iterator[RenderableType]:
    yield _summary(report)
    if style.verbosity < 0:
        return
    for note in report.environment.get("notes", ()):
        yield _hanging("note: ", note)
    for finding in report.suppression.findings if report.suppression else ():
        yield from stale_lines(finding)
    for model in report.models:
        yield ""
        yield from _model(model, report, style)
    if report.source is not None:
        yield from source_lines(report.source, verbose=style.verbosity > 0)
    if any(model.ops for model in report.models):
        yield ""
        yield Text(evidence_text(report), "dim")


def _summary(report: Report) -> Text:
    judged = sum(model.capture is not None for model in report.models)
    line = _counts(report, judged)
    line.append(f" on {join(short_target(target) for target in report.targets)}")
    if missed := len(report.models) - judged:
        line.append(f"; {missed} {'more ' if judged else ''}not judged", "bold magenta")
    if not report.summary.complete:
        line.append("; incomplete", "bold magenta")
    return line.append(accepted_text(report), "dim")


def _counts(report: Report, judged: int) -> Text:
    summary = report.summary
    scanned = [count(judged, "model")] if judged else []
    scanned += [count(report.source.files, "file")] if report.source else []
    if not scanned:
        return Text("nothing judged")
    line = Text()
    if summary.errors or summary.warnings:
        line.append(count(summary.errors, "error"), "bold red" if summary.errors else "")
        line.append(", ")
        line.append(count(summary.warnings, "warning"), "yellow" if summary.warnings else "")
    else:
        line.append("no errors, no warnings", "bold green" if summary.complete else "")
    return line.append(f" in {join(scanned)}")


def _model(model: ModelReport, report: Report, style: Style) -> Iterator[RenderableType]:
    yield _title(model)
    if model.capture is None:
        for finding in model.findings:
            yield _indented(Text(clean(finding.message), "magenta"))
            yield _hanging("-> ", finding.remedy)
        return
    found = blocks(model.ops, model.findings)
    shown = [block for block in found if style.verbosity > 0 or not _needs_no_action(block)]
    if shown:
        yield ""
        yield _indented(block_table(shown, report.targets, style.width - _INDENT))
    if model.ops:
        yield ""
        yield _indented(_coverage(model.coverage, report.targets))
    if model.time is not None:
        yield ""
        yield _hanging("step time  ", step_text(model.time))
    yield from _whole(model)
    yield from _not_judged(model)
    yield from _how_captured(model, _hidden(found) if len(shown) < len(found) else "")


def _needs_no_action(block: Block) -> bool:
    return block.is_fine or block.is_accepted


def _hidden(found: Sequence[Block]) -> str:
    """What is left out, as a hint."""
    kinds = (
        ["native, composite and skipped configurations"] if any(b.is_fine for b in found) else []
    )
    kinds += ["ignored and known findings"] if any(b.is_accepted for b in found) else []
    return f"-v lists {join(kinds)} too"


def _title(model: ModelReport) -> Text:
    title = Text(clean(model.name), "bold")
    if model.source not in model.name:
        title.append(f"  {clean(model.source)}", "not bold")
    if model.capture is None:
        return title.append("  not judged", "bold magenta")
    step = {"train": "training step", "infer": "inference"}.get(model.mode, clean(model.mode))
    ops = count(len({row.op for row in model.ops}), "op")
    configurations = count(len(model.ops), "configuration")
    calls = count(sum(row.calls for row in model.ops), "call")
    return title.append(f"  {step}: {ops}, {configurations}, {calls}", "dim not bold")


def _coverage(coverage: Coverage, targets: Sequence[Target]) -> Table:
    """Configurations and calls by status; two lines for each target when there are several."""
    several = len(targets) > 1
    lines = list(_coverage_lines(coverage, targets))
    named = {status for _, counts in lines for status in counts}
    statuses = [status for status in reversed(SEVERITY_ORDER) if status in named]
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    table.add_column("coverage", style="dim", no_wrap=not several, overflow="fold")
    for status in statuses:
        table.add_column(status, justify="right", style=STATUS_STYLES[status], no_wrap=True)
    for title, counts in lines:
        table.add_row(title, *(f"{counts.get(status, 0):,}" for status in statuses))
    return table


def _coverage_lines(
    coverage: Coverage, targets: Sequence[Target]
) -> Iterator[tuple[str, dict[str, int]]]:
    if len(targets) == 1:
        yield "configurations", coverage.by_config
        yield "calls", coverage.by_call
        return
    for target in targets:
        counts = coverage.by_target.get(target.id, {"by_config": {}, "by_call": {}})
        yield f"{target.id} configurations", counts["by_config"]
        yield "calls", counts["by_call"]


def _whole(model: ModelReport) -> Iterator[RenderableType]:
    if model.accumulated is not None:
        yield ""
        yield from map(_indented, step_lines(model.accumulated))
    if model.batches is not None:
        yield ""
        yield from map(_indented, batch_lines(model.batches))


def _not_judged(model: ModelReport) -> Iterator[RenderableType]:
    assert model.capture is not None
    unknown = list(dict.fromkeys(f.op for f in model.findings if f.rule == "OPS105"))
    parts = [f"{part.what}: {part.reason}" for part in model.capture.unseen]
    if unknown:
        parts.append(f"{join(unknown)}: unknown, see above")
    if not model.capture.complete and not model.capture.unseen:
        parts.append("part of the step")
    parts += unanswered(model)
    if not parts:
        return
    yield ""
    for part in parts:
        yield _hanging("not judged  ", part, style="magenta")


def _how_captured(model: ModelReport, hidden: str) -> Iterator[RenderableType]:
    assert model.capture is not None
    method = model.capture.method
    yield ""
    for note in (_METHODS.get(method, method), *model.capture.notes):
        yield _hanging("captured  ", note, style="dim")
    if hidden:
        yield _indented(Text(hidden, "dim"))


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, _INDENT))


def _hanging(label: str, text: str, style: str = "") -> RenderableType:
    grid = Table.grid()
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    lines = "\n".join(clean(line) for line in text.split("\n"))
    grid.add_row(label, Text(lines, style if style == "dim" else ""))
    return _indented(Group(grid))
