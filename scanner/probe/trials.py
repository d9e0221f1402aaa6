"""The sets of values that one configuration is run with, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from torch import Tensor

from scanner.probe.inputs import captured, drawn
from scanner.probe.rebuild import Operands, Unbuildable
from scanner.probe.schema import Schema
from scanner.probe.standards import dropout_rates
from scanner.probe.stress import trials_for
from scanner.records import OpCall

__all__ = ["CAPTURED", "CERTAIN", "DRAWN", "PLAIN", "call_for", "operands_for", "trials"]

CAPTURED = "captured"
"""Values of the user's step, at least of what steers the op; the others are drawn."""
DRAWN = "drawn"
"""Values drawn by the operands' roles."""
CERTAIN = "without dropout"
"""The same with a dropout rate of zero: what is dropped by chance is nobody's to compare."""
PLAIN = frozenset({CAPTURED, DRAWN, CERTAIN})
"""Trials of values that a step may have, as opposed to adversarial ones."""


def trials(
    schema: Schema, call: OpCall, seed: int, values: Sequence[Tensor] | None, *, stress: bool
) -> Iterator[tuple[str, Operands | Unbuildable]]:
    """Names with ready arguments, or with why there are none."""
    names = [CAPTURED if values is not None or call.values else DRAWN]
    if dropout_rates(schema, call):
        names.append(CERTAIN)
    if stress:
        names.extend(name for name, _ in trials_for(schema, call))
    for name in names:
        try:
            yield name, operands_for(schema, call, seed, name, values)
        except Unbuildable as reason:
            yield name, reason


def call_for(schema: Schema, call: OpCall, trial: str) -> OpCall:
    """The configuration as a trial runs it."""
    if trial != CERTAIN:
        return call
    off = dict.fromkeys(dropout_rates(schema, call), 0.0)
    return msgspec.structs.replace(call, attributes={**call.attributes, **off})


def operands_for(
    schema: Schema, call: OpCall, seed: int, trial: str, values: Sequence[Tensor] | None = None
) -> Operands:
    """The arguments of one trial, the same whenever they are asked for.

    Raises `Unbuildable`.
    """
    if trial in {CAPTURED, CERTAIN} and values is not None:
        return captured(call, values)
    return drawn(schema, call, seed, dict(trials_for(schema, call)).get(trial))
