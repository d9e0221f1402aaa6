"""Seeded values for one operand: the distributions that roles are made of.

A draw takes an `Operand` and returns a dense CPU tensor of its shape and dtype.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch import Tensor

from scanner.probe.schema import Schema
from scanner.records import OpCall, TensorSpec

__all__ = [
    "Draw",
    "Operand",
    "away_from_zero",
    "integers",
    "levels",
    "masks",
    "normal",
    "positive",
    "seed_of",
    "uniform",
    "whole",
]

_SPREAD = 4.0
"""Normal values are cut off here, so that exp and friends stay finite in half precision."""


@dataclass(frozen=True)
class Operand:
    """A tensor argument whose values are to be drawn."""

    call: OpCall
    schema: Schema
    name: str
    """The schema's argument; for elements of a list, of the list."""
    index: int
    """Position in a list argument, else 0."""
    shape: tuple[int, ...]
    """What to draw; expanded dimensions have size 1."""
    dtype: torch.dtype
    generator: torch.Generator

    def spec(self, name: str) -> TensorSpec | None:
        """Another tensor argument; of a foreach op, the one at the same position in its list."""
        names = (name, f"{name}[{self.index}]")
        return next((spec for spec in self.call.inputs if spec.name in names), None)

    def attribute(self, name: str, default: Any = None) -> Any:
        """A non-tensor argument; the default also stands in for None."""
        value = self.call.attributes.get(name)
        return default if value is None else value

    def cast(self, values: Tensor) -> Tensor:
        """The values in the operand's dtype."""
        return values.to(self.dtype)

    def unit(self) -> Tensor:
        """Uniform on [0, 1), float32 or float64."""
        return torch.rand(self.shape, generator=self.generator, dtype=self.working)

    @property
    def working(self) -> torch.dtype:
        """The real dtype to draw in, before rounding to the operand's."""
        doubles = (torch.float64, torch.complex128)
        return torch.float64 if self.dtype in doubles else torch.float32


Draw = Callable[[Operand], Tensor]


def seed_of(call: OpCall, seed: int) -> int:
    """The same for equal configurations, in any process and on any machine."""
    key = msgspec.json.encode(
        (call.op, call.inputs, call.attributes, seed), order="deterministic", enc_hook=str
    )
    return int.from_bytes(hashlib.blake2b(key, digest_size=7).digest(), "big")


def normal(operand: Operand) -> Tensor:
    """Standard normal, cut off at ±4; integers and masks for such dtypes."""
    dtype = operand.dtype
    if dtype == torch.bool:
        return masks(operand)
    if not (dtype.is_floating_point or dtype.is_complex):
        return integers(operand, -10, 11)
    if dtype.is_complex:
        wide = torch.complex128 if dtype == torch.complex128 else torch.complex64
        return operand.cast(torch.randn(operand.shape, generator=operand.generator, dtype=wide))
    values = torch.randn(operand.shape, generator=operand.generator, dtype=operand.working)
    return operand.cast(values.clamp_(-_SPREAD, _SPREAD))


def uniform(low: float, high: float) -> Draw:
    """Uniform on [low, high); integers within for integer dtypes; the real part for complex."""

    def draw(operand: Operand) -> Tensor:
        if operand.dtype == torch.bool:
            return masks(operand)
        if not (operand.dtype.is_floating_point or operand.dtype.is_complex):
            return integers(operand, -int(-low // 1), max(int(high) + 1, -int(-low // 1) + 1))
        return operand.cast(operand.unit() * (high - low) + low)

    return draw


positive = uniform(0.1, 3.0)


def away_from_zero(operand: Operand) -> Tensor:
    """Magnitude in [0.5, 2) with random sign or phase; non-zero integers; True."""
    if operand.dtype == torch.bool:
        return torch.ones(operand.shape, dtype=torch.bool)
    if not (operand.dtype.is_floating_point or operand.dtype.is_complex):
        return _signed(operand, integers(operand, 1, 11))
    magnitude = operand.unit() * 1.5 + 0.5
    if operand.dtype.is_complex:
        return operand.cast(torch.polar(magnitude, operand.unit() * 6.28))
    return operand.cast(_signed(operand, magnitude))


def _signed(operand: Operand, values: Tensor) -> Tensor:
    if operand.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        return values
    return torch.where(operand.unit() < 0.5, -values, values)


def integers(operand: Operand, low: int, high: int) -> Tensor:
    """Whole numbers in [low, high), in any dtype; not negative for unsigned ones."""
    if operand.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        low, high = max(low, 0), max(high, 1)
    values = torch.randint(low, max(high, low + 1), operand.shape, generator=operand.generator)
    return operand.cast(values)


def whole(low: int, high: int) -> Draw:
    """Whole numbers in [low, high) as a draw."""
    return lambda operand: integers(operand, low, high)


def masks(operand: Operand) -> Tensor:
    """Zero or one with equal chance, in any dtype."""
    return operand.cast(operand.unit() < 0.5)


def levels(operand: Operand) -> Tensor:
    """A few values many times, zero among them: for ops that count or look for equals."""
    return masks(operand) if operand.dtype == torch.bool else integers(operand, -2, 3)
