"""Rows that read as one: the same op, phase, verdicts and places, with all their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scanner.judge.rows import SEVERITY_ORDER, worst_status
from scanner.records import Finding, Location, OpReport, Status, Verdict
from scanner.report.words import inputs_text

__all__ = ["Block", "blocks"]

_PHASES = ("forward", "loss", "backward", "optimizer")
_FINE = frozenset({"native", "composite", "skipped"})


@dataclass(frozen=True, kw_only=True)
class Block:
    """What the text report shows as one entry of its table."""

    op: str
    via: str
    phase: str
    status: Status
    calls: int
    shapes: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    locations: tuple[Location, ...]
    findings: tuple[Finding, ...]

    @property
    def is_fine(self) -> bool:
        """Whether it can be left out unless the user asks for everything."""
        return self.status in _FINE


def blocks(rows: Iterable[OpReport], findings: Sequence[Finding]) -> list[Block]:
    """Blocks, worst status first; then causes before what follows from them, then by phase."""
    groups: dict[tuple[object, ...], list[OpReport]] = {}
    for row in rows:
        groups.setdefault((row.op, row.via, row.phase, row.verdicts), []).append(row)
    found = [_block(group, findings) for group in groups.values()]
    return sorted(found, key=_rank)


def _rank(block: Block) -> tuple[int, bool, int]:
    worst = SEVERITY_ORDER.index(block.status)
    return worst, not block.findings, _PHASES.index(block.phase)


def _block(rows: list[OpReport], findings: Sequence[Finding]) -> Block:
    first = rows[0]
    locations = tuple(dict.fromkeys(_lines(place for row in rows for place in row.locations)))
    return Block(
        op=first.op,
        via=first.via,
        phase=first.phase,
        status=worst_status(first.verdicts),
        calls=sum(row.calls for row in rows),
        shapes=tuple(dict.fromkeys(inputs_text(row.config) for row in rows)),
        verdicts=first.verdicts,
        locations=locations,
        findings=tuple(
            finding
            for finding in findings
            if finding.op == first.op and _at(finding.location, locations)
        ),
    )


def _lines(locations: Iterable[Location]) -> Iterable[Location]:
    """Each source line once, whichever modules it ran in."""
    seen = set()
    for location in locations:
        if (key := (location.file, location.line)) not in seen:
            seen.add(key)
            yield location


def _at(location: Location | None, locations: tuple[Location, ...]) -> bool:
    if location is None:
        return not locations
    return any((place.file, place.line) == (location.file, location.line) for place in locations)
