"""Conversions between element types as Metal does them.

Metal Shading Language Specification 2.12, 6.4: from floating point to an integer the value is
truncated and saturates; NaN becomes zero. Between integers the low bits stay. PyTorch relies on
the former: `Copy.mm` goes through int32 on the way from float to uint8, to wrap as the CPU does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["cast", "filled"]


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in another type."""
    if tensor.dtype == dtype:
        return tensor
    if dtype == torch.bool:
        return tensor != 0
    if tensor.is_complex() and not dtype.is_complex:
        return cast(tensor.real, dtype)
    if tensor.is_floating_point() and not (dtype.is_floating_point or dtype.is_complex):
        return _truncated(tensor, dtype)
    return tensor.to(dtype)


def filled(shape: tuple[int, ...], value: complex, dtype: torch.dtype) -> Tensor:
    """A tensor with one value, given as the double or complex number that host code passes.

    An int32 may be given as its bits: the `nonzero` of 2.0 negates an unsigned number.
    """
    wide = torch.complex128 if dtype.is_complex else torch.float64
    number = value if dtype.is_complex else value.real
    if dtype == torch.int32 and 2**31 <= value.real < 2**32:
        number = value.real - 2**32
    return cast(torch.tensor(number, dtype=wide), dtype).expand(shape)


def _truncated(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    limits = torch.iinfo(dtype)
    wide = tensor.double().nan_to_num(nan=0.0, posinf=math.inf, neginf=-math.inf)
    above, below = wide >= float(limits.max), wide <= float(limits.min)
    inside = wide.masked_fill(above | below, 0.0)
    # int64 holds the bits of uint64, whose upper half is negative in it.
    bits = torch.where(inside >= 2.0**63, inside - 2.0**64, inside).long()
    largest = limits.max if limits.max < 2**63 else -1
    return bits.masked_fill(above, largest).masked_fill(below, limits.min).to(dtype)
