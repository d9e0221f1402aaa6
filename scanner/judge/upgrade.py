"""A model against many releases: what each would cure or break, and which one is enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from scanner.judge.rows import worst_status
from scanner.records import ModelReport, OpReport, Status, Target, Verdict

__all__ = ["ModelUpgrade", "Upgrade", "compare"]

_GOOD: frozenset[Status] = frozenset({"native", "composite", "skipped"})
"""Statuses that leave nothing to cure. `unknown` is none of them."""


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """What one release does with a model, against the base."""

    target: str
    version: str
    bad: dict[str, Status]
    """Op → its worst status, for ops with one that is to be cured."""
    cures: tuple[str, ...]
    """Ops that are bad on the base and good here."""
    breaks: tuple[str, ...]
    """Ops that are good on the base, or not dispatched there, and bad here."""
    changes: tuple[str, ...]
    """Ops that are bad on both, in another way."""


class ModelUpgrade(msgspec.Struct, frozen=True, kw_only=True):
    """One model on every release."""

    name: str
    source: str
    base: str
    """Target that the others are compared with."""
    releases: tuple[Upgrade, ...]
    """Oldest first, the base among them."""
    smallest: str | None
    """First release from the base on without an error, a fallback or a known wrong result."""


def compare(model: ModelReport, targets: Sequence[Target], base: Target) -> ModelUpgrade:
    """Every target of a judged model, oldest release first, against one of them."""
    bad = {target.id: _bad(model.ops, target) for target in targets}
    releases = tuple(_upgrade(target, bad, base) for target in targets)
    later = targets[targets.index(base) :]
    return ModelUpgrade(
        name=model.name,
        source=model.source,
        base=base.id,
        releases=releases,
        smallest=next((target.version for target in later if not bad[target.id]), None),
    )


def _bad(rows: Iterable[OpReport], target: Target) -> dict[str, Status]:
    verdicts: dict[str, list[Verdict]] = {}
    for row in rows:
        for verdict in row.verdicts:
            if verdict.target == target.id and verdict.status not in _GOOD:
                verdicts.setdefault(row.op, []).append(verdict)
    return {op: worst_status(found) for op, found in sorted(verdicts.items())}


def _upgrade(target: Target, bad: Mapping[str, dict[str, Status]], base: Target) -> Upgrade:
    here, before = bad[target.id], bad[base.id]
    return Upgrade(
        target=target.id,
        version=target.version,
        bad=here,
        cures=tuple(op for op in before if op not in here),
        breaks=tuple(op for op in here if op not in before),
        changes=tuple(op for op in here if op in before and here[op] != before[op]),
    )
