"""Adversarial values and sizes: what training meets rarely and kernels get wrong first."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import torch
from torch import Tensor

from scanner.probe.draws import Operand
from scanner.probe.indices import INDEX_ROLES
from scanner.probe.inputs import Alter
from scanner.probe.schema import Schema
from scanner.probe.standards import standard_of
from scanner.probe.structures import STRUCTURE_ROLES
from scanner.records import OpCall, TensorSpec

__all__ = ["SIZES", "resized", "trials_for"]

SIZES = (0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, (1 << 31) + 1)
"""Element counts at which kernels change their ways: nothing, one, the limits of 16 and 32 bits."""


def _specials(dtype: torch.dtype) -> Tensor:
    info = torch.finfo(dtype)
    low = info.smallest_normal
    values = [0.0, -0.0, low, -low, low * 0.5, info.max, -info.max, info.max * 0.5, 1.0, -1.0]
    return torch.tensor([*values, torch.inf, -torch.inf, torch.nan], dtype=torch.float64)


def _mixed(operand: Operand, values: Tensor) -> Tensor:
    """One element in eight is special."""
    return _sprinkled(operand, values, _specials(values.dtype), 0.125)


def _one_nan(operand: Operand, values: Tensor) -> Tensor:
    """A single NaN, which an op must neither lose nor spread beyond what depends on it."""
    changed = values.clone()
    if changed.numel():
        place = int(torch.randint(changed.numel(), (1,), generator=operand.generator))
        changed.view(-1)[place] = torch.nan
    return changed


def _signed_zeros(operand: Operand, values: Tensor) -> Tensor:
    return _sprinkled(operand, values, torch.tensor([0.0, -0.0], dtype=torch.float64), 0.5)


def _subnormal(operand: Operand, values: Tensor) -> Tensor:
    info = torch.finfo(values.dtype)
    step = info.smallest_normal * info.eps
    return values * 0 + (operand.unit() * 64 * step).to(values.dtype)


def _huge(operand: Operand, values: Tensor) -> Tensor:
    """Up to the largest number; for ops that multiply and add up, where that cannot overflow."""
    limit = torch.finfo(values.dtype).max
    if "pointwise" not in operand.schema.tags:
        limit = limit**0.5 / 8
    return (values.double().sign() * limit * (operand.unit() * 0.5 + 0.5)).to(values.dtype)


def _equal(_: Operand, values: Tensor) -> Tensor:
    return torch.full_like(values, values.view(-1)[0].item()) if values.numel() else values


def _whole_boundaries(operand: Operand, values: Tensor) -> Tensor:
    """Around 2^11 and 2^16 (half), 2^24 (float32), where whole numbers stop being exact."""
    powers = [
        2.0**power for power in (8, 11, 16, 24) if 2.0**power <= torch.finfo(values.dtype).max
    ]
    marks = torch.tensor([p + d for p in powers for d in (-1.0, 0.0, 1.0)], dtype=torch.float64)
    return _sprinkled(operand, values, marks, 0.5)


def _sprinkled(operand: Operand, values: Tensor, marks: Tensor, share: float) -> Tensor:
    chosen = torch.rand(values.shape, generator=operand.generator) < share
    which = torch.randint(len(marks), values.shape, generator=operand.generator)
    return torch.where(chosen, marks[which].to(values.dtype), values)


_TRIALS: dict[str, Alter] = {
    "one NaN": _one_nan,
    "signed zeros": _signed_zeros,
    "subnormal": _subnormal,
    "huge": _huge,
    "all equal": _equal,
    "whole-number boundaries": _whole_boundaries,
    "zeros, subnormals, infinities, NaN": _mixed,
}


_PLACES = frozenset({"grid", "random_samples", "p", "prob", "count", "offsets", "boundaries", "n"})
"""Floating arguments that say where, how often or how likely; the others are data."""

_UNWRITTEN_BY_NAN = "_polynomial_"
"""Families whose recursion ends at once where it meets NaN, and returns what was never written."""


def trials_for(schema: Schema, call: OpCall) -> Iterator[tuple[str, Alter]]:
    """Named alterations of drawn values; none for ops without floating data, or of chance.

    Indices, and matrices that must be of a kind, keep their values.
    """
    floating = any("float" in spec.dtype for spec in call.inputs)
    if not floating or not standard_of(schema, call).compares_values:
        return
    for name, alter in _TRIALS.items():
        yield name, _on_data(schema, alter)


def _on_data(schema: Schema, alter: Alter) -> Alter:
    roles = (*INDEX_ROLES, *STRUCTURE_ROLES)
    fixed = _PLACES | {name for family, name in roles if family == schema.family}

    def altered(operand: Operand, values: Tensor) -> Tensor:
        if operand.name in fixed or not values.is_floating_point():
            return values
        changed = alter(operand, values)
        if _UNWRITTEN_BY_NAN not in schema.family:
            return changed
        return torch.where(changed.isnan(), values, changed)

    return altered


def resized(schema: Schema, call: OpCall, count: int) -> OpCall | None:
    """The same pointwise op over `count` contiguous elements; None for other kinds of op.

    Only where all tensors have one shape can the size change without changing what is computed.
    """
    shapes = {spec.shape for spec in call.inputs}
    alone = all(spec.alias is None for spec in call.inputs)
    if "pointwise" not in schema.tags or len(shapes) != 1 or not alone:
        return None
    inputs = tuple(_line(spec, count) for spec in call.inputs)
    return msgspec.structs.replace(call, inputs=inputs, outputs=(), values={})


def _line(spec: TensorSpec, count: int) -> TensorSpec:
    return msgspec.structs.replace(spec, shape=(count,), stride=(1,), offset=0)
