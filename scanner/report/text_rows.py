"""The table of the text report: one block for each op, phase and verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scanner.records import Finding, Location, Measurement, Target, Verdict
from scanner.report.blocks import STATUS_STYLES, Block
from scanner.report.text_accepted import accepted_lines
from scanner.report.text_time import share_line, variant_lines
from scanner.report.words import clean, count, place

__all__ = ["block_table"]

_MAX_SHAPES = 3
_MAX_PLACES = 3
_STATUS_WIDTH = 13


def block_table(blocks: Sequence[Block], targets: Sequence[Target], width: int) -> Table:
    """All blocks; a status column, and beside it op, calls, phase, shapes, places and reasons."""
    op_width = min(max(len(block.op) for block in blocks), max(20, width - 40))
    table = Table.grid()
    table.add_column(width=_STATUS_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    before = None
    for block in blocks:
        if before and not before.is_fine:
            table.add_row()
        style = STATUS_STYLES[block.status]
        table.add_row(Text(block.status, style), Group(*_lines(block, targets, op_width)))
        before = block
    return table


def _lines(block: Block, targets: Sequence[Target], op_width: int) -> Iterator[RenderableType]:
    head = Text(clean(block.op).ljust(op_width), "" if block.is_fine else "bold")
    head.append(f"  {count(block.calls, 'call'):>9}  {block.phase}", "not bold")
    if block.via:
        head.append(f"  for {clean(block.via)}", "dim not bold")
    yield head
    yield Text(_limited(block.shapes, _MAX_SHAPES, "; ", "shape"), "cyan")
    if block.is_fine:
        yield from _differences(block, targets)
        yield from share_line(block)
        yield from variant_lines(block)
        return
    for location in block.locations[:_MAX_PLACES]:
        yield from _place(location)
    if len(block.locations) > _MAX_PLACES:
        yield Text(f"+{count(len(block.locations) - _MAX_PLACES, 'place')}", "dim")
    yield from _verdicts(block.verdicts, targets)
    yield from _measured(block.measurement)
    yield from share_line(block)
    yield from variant_lines(block)
    for finding in _asked_for(block):
        yield Text.assemble((f"{finding.rule} ", "bold"), clean(finding.remedy))
    yield from accepted_lines(block.findings)


def _measured(measurement: Measurement | None) -> Iterator[Text]:
    """What a device did that is none of the targets."""
    if measurement is None:
        return
    line = Text(f"{clean(measurement.device)}: ")
    line.append(measurement.status, STATUS_STYLES[measurement.status])
    line.append(f", {clean(str(measurement.detail.get('reason', '')))}")
    line.append(" (measured)", "dim")
    yield line


def _asked_for(block: Block) -> Sequence[Finding]:
    """One finding; where a device was run, one of each kind: it may ask for something else."""
    asked = [finding for finding in block.findings if not finding.suppressed]
    if block.measurement is None and not block.variants:
        return asked[:1]
    kinds = {(finding.rule, finding.remedy): finding for finding in reversed(asked)}
    return list(kinds.values())[::-1]


def _differences(block: Block, targets: Sequence[Target]) -> Iterator[Text]:
    """Reasons of a row that needs no action: only where the targets do not agree."""
    agreed = len({verdict.status for verdict in block.verdicts}) == 1
    if not agreed or len(block.verdicts) < len(targets) or block.status == "skipped":
        yield from _verdicts(block.verdicts, targets)


def _place(location: Location) -> Iterator[Text]:
    line = Text(place(location), no_wrap=True, overflow="ellipsis")
    if location.code:
        line.append(f"  {clean(location.code)}", "italic")
    yield line
    if location.library:
        yield Text(f"  through {clean(location.library)}", "dim")


def _verdicts(verdicts: Sequence[Verdict], targets: Sequence[Target]) -> Iterator[Text]:
    """One line for each verdict; targets are named only when there are several."""
    names: dict[Verdict, list[str]] = {}
    for verdict in verdicts:
        names.setdefault(msgspec.structs.replace(verdict, target=""), []).append(verdict.target)
    for verdict, same in names.items():
        line = Text()
        if len(targets) > 1:
            line.append(f"{', '.join(same)}: ")
            line.append(f"{verdict.status}, ", STATUS_STYLES[verdict.status])
        line.append(clean(verdict.reason))
        if verdict.evidence:
            line.append(f" ({verdict.evidence})", "dim")
        if verdict.fixed_in:
            line.append(f"; fixed in torch {verdict.fixed_in}", "green")
        yield line


def _limited(texts: Sequence[str], most: int, separator: str, noun: str) -> str:
    shown = separator.join(texts[:most])
    hidden = len(texts) - most
    return shown if hidden <= 0 else f"{shown}{separator}+{count(hidden, noun)}"
