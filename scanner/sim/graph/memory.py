"""Host memory as tensors: what a run is fed with and where its results go."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from scanner.sim.graph.methods import Unsupported, dtype_named
from scanner.sim.graph.recording import TensorData

__all__ = ["read", "write"]

_CONVERTED = frozenset({(torch.int32, torch.int64), (torch.float32, torch.bfloat16)})
"""What a destination converts: releases leave it to the result's memory, and their tests pass.

Places of elements are int32 where `topk` and `nonzero` give int64; `topk`, `median` and
`multinomial` of bfloat16 compute in float32.
"""


def read(data: TensorData) -> Tensor:
    """A copy of the content, dense. Unsupported when it is not all inside its memory."""
    return _mapped(data).clone(memory_format=torch.contiguous_format)


def write(data: TensorData, value: Tensor) -> None:
    """Puts a value of as many elements where it belongs.

    One element fills the destination, as every `fill_` of the releases up to 2.12 relies on.
    Unsupported when type or size differ from the destination's otherwise, or it leaves its memory.
    """
    place = _mapped(data)
    if value.dtype != place.dtype and (value.dtype, place.dtype) not in _CONVERTED:
        raise Unsupported(f"a result of {_name(value)} for a destination of {data.dtype}")
    value = value.to(place.dtype)
    if value.numel() == 1:
        place.copy_(value.reshape(()))
        return
    if value.numel() != place.numel():
        wanted, found = list(data.shape), list(value.shape)
        raise Unsupported(f"a result of shape {found} for a destination of shape {wanted}")
    place.copy_(value.reshape(place.shape))


def _mapped(data: TensorData) -> Tensor:
    """The memory itself."""
    dtype = dtype_named(data.dtype)
    if 0 in data.shape:
        return torch.empty(data.shape, dtype=dtype)
    strides = data.strides or _dense(data.shape)
    if min(strides, default=0) < 0:
        raise Unsupported("negative strides")
    needed = 1 + sum((size - 1) * step for size, step in zip(data.shape, strides, strict=True))
    if needed * dtype.itemsize > data.nbytes:
        raise Unsupported(
            f"{needed * dtype.itemsize} bytes are touched where {data.nbytes} are bound"
        )
    raw = (ctypes.c_char * (needed * dtype.itemsize)).from_address(data.address)
    return torch.frombuffer(raw, dtype=dtype).as_strided(data.shape, strides)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def _name(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
