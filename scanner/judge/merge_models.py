"""One model that several reports judged for different targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from scanner.judge.rows import coverage
from scanner.records import CallOrder, ModelReport, OpReport

__all__ = ["join_models", "model_key", "targets_of"]

_ALONE = ("capture", "memory", "time", "accumulated", "batches")
"""Parts of a model that cannot be joined, only be equal or missing."""
_CONFLICT = object()


def join_models(models: Sequence[ModelReport]) -> tuple[ModelReport, ...]:
    """Each model once, wherever reports judged it alike or for other targets.

    Rows stand in the order of the first report, those that only a later one has after them.
    Models that contradict each other stay apart.
    """
    joined: list[ModelReport] = []
    for model in models:
        same = [at for at, known in enumerate(joined) if model_key(known) == model_key(model)]
        if any(joined[at] == model for at in same):
            continue
        unions = [(at, one) for at in same if (one := _joined(joined[at], model)) is not None]
        if unions:
            place, union = unions[0]
            joined[place] = union
        else:
            joined.append(model)
    return tuple(joined)


def model_key(model: ModelReport) -> tuple[str, ...]:
    """What a user would call the same model."""
    return model.source, model.entry, model.name, model.mode


def targets_of(model: ModelReport) -> set[str]:
    """Ids of the targets that it was judged for."""
    return {verdict.target for row in model.ops for verdict in row.verdicts}


def _joined(one: ModelReport, other: ModelReport) -> ModelReport | None:
    """One model with the targets of both; None where targets overlap or the rest differs."""
    alone = {name: _either(getattr(one, name), getattr(other, name)) for name in _ALONE}
    apart = targets_of(one).isdisjoint(targets_of(other)) and one.ops and other.ops
    if not apart or any(value is _CONFLICT for value in alone.values()):
        return None
    places: dict[bytes, int] = {}
    rows: list[OpReport] = []
    for row in (*one.ops, *other.ops):
        place = places.setdefault(_row_key(row), len(rows))
        if place == len(rows):
            rows.append(row)
        elif (both := _joined_row(rows[place], row)) is not None:
            rows[place] = both
        else:
            return None
    return msgspec.structs.replace(
        one,
        ops=tuple(rows),
        order=(*one.order, *(_moved(order, other.ops, places) for order in other.order)),
        findings=_distinct((*one.findings, *other.findings)),
        coverage=coverage(rows),
        **alone,
    )


def _either(one: Any, other: Any) -> Any:
    if one is None or one == other:
        return other
    return one if other is None else _CONFLICT


def _row_key(row: OpReport) -> bytes:
    return msgspec.json.encode((row.op, row.phase, row.via, row.config), order="deterministic")


def _joined_row(one: OpReport, other: OpReport) -> OpReport | None:
    measurement = _either(one.measurement, other.measurement)
    if one.calls != other.calls or measurement is _CONFLICT:
        return None
    return msgspec.structs.replace(
        one,
        verdicts=(*one.verdicts, *other.verdicts),
        locations=_distinct((*one.locations, *other.locations)),
        measurement=measurement,
        simulations=one.simulations | other.simulations,
        variants=_distinct((*one.variants, *other.variants)),
    )


def _moved(order: CallOrder, rows: Sequence[OpReport], places: dict[bytes, int]) -> CallOrder:
    new = [places[_row_key(row)] for row in rows]
    return CallOrder(targets=order.targets, rows=tuple(new[row] for row in order.rows))


def _distinct(records: Sequence[Any]) -> tuple[Any, ...]:
    return tuple({msgspec.json.encode(record): record for record in records}.values())
