"""A configuration with more work at once: its leading dimension grown, everything else as it was.

Which tensors share the batch is not written down anywhere. So guesses are run, on the CPU and with
twice as many: one is right when every output either keeps its shape or grows in its leading
dimension alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from scanner.probe.inputs import drawn
from scanner.probe.rebuild import Unbuildable, dtype_of
from scanner.probe.reference import evaluate
from scanner.probe.schema import Schema
from scanner.records import OpCall, TensorSpec

__all__ = ["Growth", "growth_of"]

_SIZES = frozenset({"N", "input_size", "input_sizes", "self_size", "self_sizes", "shape", "size"})
"""Attributes that repeat a tensor's sizes, the leading one first."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Growth:
    """How a configuration grows."""

    call: OpCall
    grows: frozenset[int]
    """Positions of the inputs whose leading dimension is multiplied."""
    lead: int
    """That dimension's size."""
    outputs: Shapes

    def at(self, factor: int) -> OpCall:
        """The configuration with a leading dimension `factor` times as large."""
        return _grown(self.call, self.grows, self.lead, factor)

    def size(self, factor: int) -> tuple[int, int]:
        """Elements of the largest tensor, and bytes of all tensors at most."""
        inputs = [_count(spec.shape) for spec in self.at(factor).inputs]
        outputs = [factor * _count(shape) for shape in self.outputs.values()]
        widths = [dtype_of(spec.dtype).itemsize for spec in self.call.inputs]
        held = sum(map(int.__mul__, inputs, widths)) + max(widths) * sum(outputs)
        return max([*inputs, *outputs]), held


def growth_of(schema: Schema, call: OpCall, seed: int) -> Growth | None:
    """None when no guess is right: the configuration cannot be grown."""
    before = _shapes(schema, call, seed)
    if before is None:
        return None
    lead = _lead(call, before)
    for grows in _guesses(call, lead, together=schema.foreach):
        after = _shapes(schema, _grown(call, grows, lead, 2), seed)
        if after is not None and _grew(before, after):
            return Growth(call, grows, lead, before)
    return None


def _lead(call: OpCall, outputs: Shapes) -> int:
    shapes = [*outputs.values(), *(spec.shape for spec in call.inputs)]
    return next((shape[0] for shape in shapes if shape), 0)


def _guesses(call: OpCall, lead: int, *, together: bool) -> Iterator[frozenset[int]]:
    """Likely ones first: everything as long as the batch, then of the same rank, then one alone.

    `together`: an op over lists of tensors has no batch, more work is more of each.
    """
    ranked = {n: spec for n, spec in enumerate(call.inputs) if spec.shape}
    if any(spec.layout != "strided" for spec in ranked.values()):
        return
    alike = frozenset(n for n, spec in ranked.items() if spec.shape[0] == lead)
    most = max((len(ranked[n].shape) for n in alike), default=0)
    guesses = [alike, frozenset(n for n in alike if len(ranked[n].shape) == most)]
    guesses += [frozenset({n}) for n in sorted(alike)]
    guesses.insert(0 if together else len(guesses), frozenset(ranked))
    yield from (guess for guess in dict.fromkeys(guesses) if guess)


def _grown(call: OpCall, grows: Collection[int], lead: int, factor: int) -> OpCall:
    inputs = tuple(
        _grown_spec(spec, factor if place in grows else 1) for place, spec in enumerate(call.inputs)
    )
    attributes = {
        name: _grown_sizes(value, lead, factor) if name in _SIZES else value
        for name, value in call.attributes.items()
    }
    return msgspec.structs.replace(
        call, inputs=inputs, outputs=(), attributes=attributes, values={}
    )


def _grown_spec(spec: TensorSpec, factor: int) -> TensorSpec:
    """Its layout kept; on storage of its own, since what it shared has no room."""
    alone = msgspec.structs.replace(spec, alias=None, offset=0)
    if factor == 1 or not spec.shape:
        return alone
    span = spec.stride[0] * spec.shape[0]
    outer = [bool(span) and stride >= span for stride in spec.stride[1:]]
    stride = (
        spec.stride[0],
        *(s * factor if o else s for s, o in zip(spec.stride[1:], outer, strict=True)),
    )
    shape = (spec.shape[0] * factor, *spec.shape[1:])
    return msgspec.structs.replace(alone, shape=shape, stride=stride)


def _grown_sizes(value: Any, lead: int, factor: int) -> Any:
    if value == lead:
        return lead * factor
    if isinstance(value, list | tuple) and value and value[0] == lead:
        return [lead * factor, *value[1:]]
    return value


def _shapes(schema: Schema, call: OpCall, seed: int) -> Shapes | None:
    try:
        operands = drawn(schema, call, seed)
    except (Unbuildable, RuntimeError):
        return None
    results = evaluate(schema, call, operands.tensors)
    if results.error is not None:
        return None
    return {name: tuple(tensor.shape) for name, tensor in results.outputs.items()}


def _grew(before: Shapes, after: Shapes) -> bool:
    return before.keys() == after.keys() and all(
        after[name] in {shape, (2 * shape[0], *shape[1:]) if shape else ()}
        for name, shape in before.items()
    )


def _count(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()
