"""Ready arguments for a configuration: drawn by role, or as they were in the user's step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from scanner.probe.draws import Operand, seed_of
from scanner.probe.layout import extent, independent
from scanner.probe.rebuild import Operands, Unbuildable, allocate, dtype_of
from scanner.probe.roles import role_of
from scanner.probe.saved import SAVED, Values
from scanner.probe.schema import Schema
from scanner.records import OpCall, TensorSpec

__all__ = ["Alter", "captured", "drawn"]

_ELEMENT = re.compile(r"(.+)\[(\d+)\]")

Alter = Callable[[Operand, Tensor], Tensor]
"""Changes drawn values before they are laid out; see `stress`."""


def drawn(schema: Schema, call: OpCall, seed: int, alter: Alter | None = None) -> Operands:
    """CPU tensors of the configuration, the same for the same seed.

    Arguments whose values were captured hold these.

    Raises `Unbuildable` when the configuration cannot be rebuilt.
    """
    base = seed_of(call, seed)

    def draw(place: int, shape: tuple[int, ...]) -> Tensor:
        spec = call.inputs[place]
        name, index = _argument(spec.name)
        # A generator each: what happens to one operand leaves the others as they are.
        generator = torch.Generator().manual_seed(base + place)
        operand = Operand(call, schema, name, index, shape, dtype_of(spec.dtype), generator)
        if spec.name in call.values:
            values = _laid(_recorded(call, spec), spec, shape)
        else:
            values = role_of(schema.family, name)(operand)
        return alter(operand, values) if alter is not None else values

    operands = allocate(call, draw)
    saved = SAVED.get(schema.family)
    if saved is not None:
        try:
            _overwrite(call, operands, saved(_values(call, operands)))
        except (RuntimeError, IndexError, TypeError) as error:
            raise Unbuildable(f"what its forward op saved cannot be computed: {error}") from error
    return operands


def captured(call: OpCall, values: Sequence[Tensor]) -> Operands:
    """Tensors of the configuration that hold the given values, in the order of `inputs`."""

    def draw(place: int, shape: tuple[int, ...]) -> Tensor:
        value, spec = values[place].detach(), call.inputs[place]
        return value if spec.layout != "strided" else _laid(value, spec, shape)

    return allocate(call, draw)


def _recorded(call: OpCall, spec: TensorSpec) -> Tensor:
    """What the argument held when the step was captured."""
    values = call.values[spec.name]
    if len(values) != math.prod(spec.shape):
        raise Unbuildable(f"{len(values)} values were recorded for {spec.name}, not its number")
    return torch.tensor(values, dtype=dtype_of(spec.dtype)).reshape(spec.shape)


def _laid(value: Tensor, spec: TensorSpec, shape: tuple[int, ...]) -> Tensor:
    """The values in the shape that they are written in."""
    if len(shape) == len(spec.shape) and all(map(int.__le__, shape, spec.shape)):
        return _cut(value, shape)  # expanded dimensions are written once
    return _by_place(value, spec)


def _by_place(value: Tensor, spec: TensorSpec) -> Tensor:
    """Values of an irregularly overlapping view, one for each element of storage it covers."""
    length = extent(spec.shape, spec.stride, spec.offset)
    place = torch.arange(length).as_strided(spec.shape, spec.stride, spec.offset).reshape(-1)
    flat = torch.zeros(length, dtype=value.dtype)
    flat[place] = value.reshape(-1)
    return flat[place.unique()]


def _cut(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    for dim, size in enumerate(shape):
        value = value.narrow(dim, 0, size)
    return value


def _argument(name: str) -> tuple[str, int]:
    match = _ELEMENT.fullmatch(name)
    return (match.group(1), int(match.group(2))) if match else (name, 0)


def _values(call: OpCall, operands: Operands) -> Values:
    tensors = {
        spec.name: tensor for spec, tensor in zip(call.inputs, operands.tensors, strict=True)
    }
    return Values(tensors, call.attributes)


def _overwrite(call: OpCall, operands: Operands, values: Mapping[str, Tensor]) -> None:
    """Writes saved values over drawn ones; one of another shape was saved by other rules."""
    for spec, tensor in zip(call.inputs, operands.tensors, strict=True):
        value = values.get(spec.name)
        target = independent(tensor) if value is not None else None
        if value is not None and target is not None and value.shape == tensor.shape:
            target.copy_(_cut(value, tuple(target.shape)))
