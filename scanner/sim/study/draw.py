"""Values over the whole range of a dtype, seeded."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["DRAWN", "whole_range"]

DRAWN = 49_152
"""Elements that are drawn where no shape is given; 65,536 for 16-bit dtypes, which are all."""

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"))
_WIDE, _NARROW = 10.0, 1.0


def whole_range(dtype: torch.dtype, count: int, seed: int) -> Tensor:
    """`count` values: for 16-bit floats every bit pattern, as far as they fit.

    Other floats are a third random bit patterns, which reach every magnitude, a third uniform in
    ±10 and a third in ±1, where most functions have their shape; special values come first.
    """
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_complex:
        real = torch.float32 if dtype == torch.complex64 else dtype.to_real()
        parts = [whole_range(real, count, seed + part) for part in (0, 1)]
        return torch.complex(*(part.to(real) for part in parts)).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    if not dtype.is_floating_point:
        return _patterns(dtype, count, generator)
    if dtype.itemsize == 2:
        every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)
        order = torch.randperm(1 << 16, generator=generator)
        return every[order].repeat(-(-count // every.numel()))[:count]
    third = count // 3
    drawn = [
        torch.tensor(_SPECIAL, dtype=dtype),
        _patterns(dtype, third, generator),
        _uniform(dtype, third, _WIDE, generator),
        _uniform(dtype, count, _NARROW, generator),
    ]
    return torch.cat(drawn)[:count]


def _patterns(dtype: torch.dtype, count: int, generator: torch.Generator) -> Tensor:
    size = dtype.itemsize
    raw = torch.randint(0, 256, (count * size,), generator=generator, dtype=torch.uint8)
    return raw.view(_INTEGERS[size]).view(dtype)


def _uniform(dtype: torch.dtype, count: int, limit: float, generator: torch.Generator) -> Tensor:
    wide = torch.rand(count, generator=generator, dtype=torch.float64)
    return ((2 * wide - 1) * limit).to(dtype)
