"""The sets of values that one configuration is run with, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from scanner.probe.inputs import captured, drawn
from scanner.probe.rebuild import Operands, Unbuildable
from scanner.probe.schema import Schema
from scanner.probe.stress import trials_for
from scanner.records import OpCall

__all__ = ["CAPTURED", "DRAWN", "operands_for", "trials"]

CAPTURED = "captured"
"""Values of the user's step, at least of what steers the op; the others are drawn."""
DRAWN = "drawn"
"""Values drawn by the operands' roles."""


def trials(
    schema: Schema, call: OpCall, seed: int, values: Sequence[Tensor] | None, *, stress: bool
) -> Iterator[tuple[str, Operands | Unbuildable]]:
    """Names with ready arguments, or with why there are none."""
    names = [CAPTURED if values is not None or call.values else DRAWN]
    if stress:
        names.extend(name for name, _ in trials_for(schema, call))
    for name in names:
        try:
            yield name, operands_for(schema, call, seed, name, values)
        except Unbuildable as reason:
            yield name, reason


def operands_for(
    schema: Schema, call: OpCall, seed: int, trial: str, values: Sequence[Tensor] | None = None
) -> Operands:
    """The arguments of one trial, the same whenever they are asked for.

    Raises `Unbuildable`.
    """
    if trial == CAPTURED and values is not None:
        return captured(call, values)
    return drawn(schema, call, seed, dict(trials_for(schema, call)).get(trial))
