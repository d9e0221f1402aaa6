"""Values without ties, for ops that choose among them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from scanner.probe.draws import Operand, normal

__all__ = ["distinct"]

_OCTAVES = 12
"""Powers of two, of either sign, that half-precision values are taken from."""
_MOST = 1 << 24


def distinct(operand: Operand) -> Tensor:
    """Values without ties as far as the dtype has enough, so that *which* is largest is defined.

    Half-precision normals tie often, and then any of the tied positions would be right. Where the
    dtype has fewer numbers than there are elements, those that the op chooses among still differ:
    one line along `dim`, or the neighbourhood that a pooling window covers.
    """
    dtype = operand.dtype
    if dtype == torch.bool or dtype.is_complex:
        return normal(operand)
    span, most = math.prod(operand.shape), _numbers(dtype)
    if span <= most:
        ranks = torch.randperm(span, generator=operand.generator).reshape(operand.shape)
    else:
        ranks, span = _among(operand, most)
    return _ladder(dtype, span)[ranks] if dtype.is_floating_point else (ranks % most).to(dtype)


def _numbers(dtype: torch.dtype) -> int:
    """How many distinct values of a dtype are drawn at most."""
    if dtype in (torch.float16, torch.bfloat16):
        return 2 * _OCTAVES * _mantissa(dtype)
    return _MOST if dtype.is_floating_point else min(torch.iinfo(dtype).max, _MOST)


def _among(operand: Operand, most: int) -> tuple[Tensor, int]:
    """Ranks that differ among the elements that compete, and how many ranks there are."""
    if "pool" in operand.schema.family:
        spatial = min(3 if "3d" in operand.schema.family else 2, len(operand.shape))
        return _tiled(operand, operand.shape, spatial, most)
    dim = operand.attribute("dim", -1)
    dim = dim if isinstance(dim, int) else -1
    shape = list(operand.shape)
    shape.append(shape.pop(dim))
    ranks, span = _tiled(operand, tuple(shape), 1, most)
    return ranks.movedim(-1, dim), span


def _tiled(operand: Operand, shape: tuple[int, ...], dims: int, most: int) -> tuple[Tensor, int]:
    """Over the last dimensions, ranks that repeat only from one tile to the next."""
    side = int(most ** (1 / dims) + 1e-9)
    lead, tile = shape[:-dims], [min(size, side) for size in shape[-dims:]]
    span = math.prod(tile)
    keys = torch.rand((*lead, span), generator=operand.generator, dtype=torch.float64)
    ranks = keys.argsort(-1).reshape(*lead, *tile)
    for place, size in enumerate(shape[-dims:]):
        ranks = ranks.index_select(place - dims, torch.arange(size) % tile[place])
    return ranks, span


def _ladder(dtype: torch.dtype, count: int) -> Tensor:
    """`count` values in ascending order, distinct in `dtype` where it has enough."""
    if dtype not in (torch.float16, torch.bfloat16):
        return torch.linspace(-3, 3, count, dtype=torch.float64).to(dtype)
    # Neighbouring bit patterns of a half are neighbouring numbers: take them outward from one.
    one = int(torch.ones((), dtype=dtype).view(torch.int16))
    mantissa = _mantissa(dtype)
    each = -(-count // 2)
    start = one - max(0, min(each - mantissa, (_OCTAVES - 2) * mantissa))
    patterns = torch.arange(start, start + each, dtype=torch.int16).view(dtype)
    return torch.cat([-patterns.flip(0), patterns])[:count]


def _mantissa(dtype: torch.dtype) -> int:
    """Numbers of a half-precision dtype from one power of two to the next."""
    return 1 << (10 if dtype == torch.float16 else 7)
