"""Rows that read as one: the same op, phase, verdicts and places, with all their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scanner.judge.rows import worst_status
from scanner.records import Finding, Location, Measurement, OpReport, Status, Variant, Verdict
from scanner.report.words import inputs_text
from scanner.statuses import SEVERITY_ORDER

__all__ = ["STATUS_STYLES", "Block", "blocks", "each_line", "measured_apart"]

_PHASES = ("forward", "loss", "backward", "optimizer")
_FINE = frozenset({"native", "composite", "skipped"})
_HARMLESS = _FINE | {"slow"}

STATUS_STYLES = {
    "native": "green",
    "composite": "green",
    "skipped": "dim",
    "unknown": "magenta",
    "slow": "yellow",
    "fallback": "yellow",
    "nan": "bold red",
    "wrong": "bold red",
    "unsupported": "bold red",
    "crash": "bold red",
}
"""Status → rich style."""


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
    measurement: Measurement | None
    """What a device did that no verdict tells, see `measured_apart`."""
    locations: tuple[Location, ...]
    findings: tuple[Finding, ...]
    times: tuple[dict[str, Any], ...] = ()
    """The `share` of each row that was timed, see `scanner.judge.step_time`."""

    @property
    def device_s(self) -> float:
        """Seconds of all its calls on the device, as far as they were timed."""
        return sum(float(share["device_s"]) for share in self.times)

    variants: tuple[Variant, ...] = ()
    """Those of its rows, in order."""

    @property
    def is_fine(self) -> bool:
        """Whether it can be left out unless the user asks for everything."""
        return self.status in _FINE and all(
            variant.measurement.status in _HARMLESS and not variant.overflows
            for variant in self.variants
        )

    @property
    def is_accepted(self) -> bool:
        """Whether all that it is found to do wrong is ignored or known from a baseline."""
        return bool(self.findings) and all(finding.suppressed for finding in self.findings)


def blocks(rows: Iterable[OpReport], findings: Sequence[Finding]) -> list[Block]:
    """Blocks, worst status first; then causes before what follows from them, then what takes
    longest on the device, where that was measured, then by phase."""
    groups: dict[tuple[object, ...], list[OpReport]] = {}
    for row in rows:
        apart = measured_apart(row)
        seen = (
            (apart.status, apart.detail.get("reason")) if apart else None,
            *((variant.dtype, variant.measurement.status) for variant in row.variants),
        )
        groups.setdefault((row.op, row.via, row.phase, row.verdicts, seen), []).append(row)
    found = [_block(group, findings) for group in groups.values()]
    return sorted(found, key=_rank)


def measured_apart(row: OpReport) -> Measurement | None:
    """What went wrong on a device that is none of the targets; None if nothing did.

    What is not known is listed by its reason, below the table.
    """
    measurement = row.measurement
    if measurement is None or measurement.status in _FINE | {"unknown"}:
        return None
    told = any(verdict.evidence == "measured" for verdict in row.verdicts)
    return None if told else measurement


def _rank(block: Block) -> tuple[int, bool, float, int]:
    worst = SEVERITY_ORDER.index(block.status)
    return worst, not block.findings, -block.device_s, _PHASES.index(block.phase)


def _block(rows: list[OpReport], findings: Sequence[Finding]) -> Block:
    first = rows[0]
    apart = measured_apart(first)
    verdict = worst_status(first.verdicts)
    locations = tuple(dict.fromkeys(each_line(place for row in rows for place in row.locations)))
    return Block(
        op=first.op,
        via=first.via,
        phase=first.phase,
        status=min(verdict, apart.status if apart else verdict, key=SEVERITY_ORDER.index),
        calls=sum(row.calls for row in rows),
        shapes=tuple(dict.fromkeys(inputs_text(row.config) for row in rows)),
        verdicts=first.verdicts,
        measurement=apart,
        locations=locations,
        findings=tuple(
            finding
            for finding in findings
            if finding.op == first.op and _at(finding.location, locations)
        ),
        variants=tuple(variant for row in rows for variant in row.variants),
        times=tuple(
            row.measurement.detail["share"]
            for row in rows
            if row.measurement is not None and "share" in row.measurement.detail
        ),
    )


def each_line(locations: Iterable[Location]) -> Iterable[Location]:
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
