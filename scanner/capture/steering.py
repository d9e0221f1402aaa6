"""Values of small integer and bool arguments: indices, masks and lengths steer what an op does."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import torch
from torch import Tensor

__all__ = ["LIMIT", "steering_values"]

LIMIT = 4096
"""Bytes of JSON for one configuration; what goes beyond is drawn by whoever runs it."""
_SHORTEST = 2
"""Bytes that an element takes at least: a digit and a comma."""
_PLAIN = (Tensor, torch.nn.Parameter)


def steering_values(named: Iterable[tuple[str, Tensor]]) -> dict[str, tuple[int, ...]]:
    """Argument → its elements in row-major order, bools as 0 and 1, for those with real values.

    Arguments are taken in order, as long as they fit.
    """
    found: dict[str, tuple[int, ...]] = {}
    left = LIMIT
    for name, tensor in named:
        values = _values(tensor)
        size = len(msgspec.json.encode({name: values}))
        if values and size <= left:
            found[name] = values
            left -= size
    return found


def _values(tensor: Tensor) -> tuple[int, ...]:
    if type(tensor) not in _PLAIN or tensor.device.type != "cpu" or _is_no_integer(tensor):
        return ()
    if tensor.numel() > LIMIT // _SHORTEST:
        return ()
    try:
        return tuple(int(value) for value in tensor.detach().reshape(-1).tolist())
    except RuntimeError:
        return ()  # inside vmap and its like, a tensor has no values of its own


def _is_no_integer(tensor: Tensor) -> bool:
    if tensor.layout != torch.strided or tensor.is_quantized:
        return True
    return tensor.is_floating_point() or tensor.is_complex()
