"""Faults in what an op computes. Each takes the op's result and returns a faulty one.

Values are spoilt in place and behind autograd's back (`.data`): the result keeps its strides, its
aliases and its history, as it would when a kernel had written the wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from scanner.backends.overloads import overload

__all__ = ["RESULTS", "unwritten"]

_BIAS = 1.01
_GRADIENT = 1.5
_ULPS = 3
_TILE = 16
_BITS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}
_OTHER_DTYPE = {
    torch.float32: torch.float64,
    torch.float64: torch.float32,
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int64: torch.int32,
    torch.complex64: torch.complex128,
}

Spoil = Callable[[torch.Tensor], torch.Tensor]


def unwritten(op: str, tensors: list[torch.Tensor], run: Callable[[], Any]) -> Any:
    """Runs an op and undoes what it wrote into its arguments; a functional op is unharmed."""
    if not overload(op)._schema.is_mutable:
        return run()
    saved = [(tensor.untyped_storage(), tensor.untyped_storage().clone()) for tensor in tensors]
    result = run()
    for storage, before in saved:
        storage.copy_(before)
    return result


def _spoil_values(spoil: Spoil) -> Callable[[Any], Any]:
    def each(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided or not tensor.numel():
            return tensor
        dense = tensor.data.clone(memory_format=torch.contiguous_format).resolve_conj()
        spoilt = spoil(dense.resolve_neg())
        try:
            tensor.data.copy_(spoilt)
        except RuntimeError:
            # An expanded view cannot be written to, but an op could have returned it dense.
            return spoilt
        return tensor

    return lambda result: tree_map_only(torch.Tensor, each, result)


def _replace(change: Spoil) -> Callable[[Any], Any]:
    return lambda result: tree_map_only(torch.Tensor, change, result)


def _one_nan(values: torch.Tensor) -> torch.Tensor:
    if values.is_floating_point() or values.is_complex():
        values.view(-1)[values.numel() // 2] = torch.nan
    return values


def _no_nan(values: torch.Tensor) -> torch.Tensor:
    return torch.where(values.isnan(), torch.zeros_like(values), values)


def _biased(values: torch.Tensor) -> torch.Tensor:
    return values * _BIAS if values.is_floating_point() or values.is_complex() else values


def _stale_tile(values: torch.Tensor) -> torch.Tensor:
    tile = values.view(-1)[-_TILE:]
    # Stale is only stale where it differs from what belongs there.
    tile.fill_(0) if bool(tile.any()) else tile.fill_(1)
    return values


def _noisy(values: torch.Tensor) -> torch.Tensor:
    if values.is_complex():
        return torch.view_as_complex(_noisy(torch.view_as_real(values).contiguous()))
    if values.dtype not in _BITS:
        return values
    count = torch.arange(values.numel()).view(values.shape)
    steps = (count % (2 * _ULPS + 1) - _ULPS).to(_BITS[values.dtype])
    # Zeros and denormals stay: three steps there change every digit.
    normal = values.isfinite() & (values.abs() >= 8 * torch.finfo(values.dtype).smallest_normal)
    noisy = (values.view(_BITS[values.dtype]) + steps).view(values.dtype)
    return torch.where(normal & noisy.isfinite(), noisy, values)


def _other_dtype(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(_OTHER_DTYPE.get(tensor.dtype, torch.float32))


def _other_strides(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, one element apart in memory; impossible for one element or none."""
    if tensor.numel() < 2:
        return tensor
    padded = torch.empty(*tensor.shape, 2, dtype=tensor.dtype)
    other = padded.select(-1, 0)
    other.copy_(tensor)
    return other


def _steeper(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.requires_grad:
        tensor.register_hook(lambda gradient: gradient * _GRADIENT)
    return tensor


RESULTS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "nan": _spoil_values(_one_nan),
        "unnan": _spoil_values(_no_nan),
        "bias": _spoil_values(_biased),
        "tile": _spoil_values(_stale_tile),
        "noise": _spoil_values(_noisy),
        "dtype": _replace(_other_dtype),
        "stride": _replace(_other_strides),
        "grad": _replace(_steeper),
    }
)
"""Fault → what it makes of a result."""
