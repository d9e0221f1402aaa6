"""Leaves recognisable bytes in the device's free memory: what an op does not write shows them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from scanner.backends.interface import Device

__all__ = ["PATTERNS", "poison_memory", "still_poisoned"]

PATTERNS = (0xCB, 0x35)
"""Bytes for the first and the second run: an element that shows both was never written.

As float32 they are −2.7·10⁷ and 6.8·10⁻⁷, as float16 −15.6 and 0.32: none is a likely result.
"""

_LARGEST = 1 << 26
"""Bytes; larger outputs are not worth the copy."""


def poison_memory(device: Device, expected: Iterable[Tensor], pattern: int) -> None:
    """Allocates and frees poisoned tensors of the outputs' sizes.

    Caching allocators hand the same blocks to the op that runs next; where one does not, nothing
    is lost but the check.
    """
    kept = []
    for tensor in expected:
        size = tensor.numel() * tensor.element_size()
        if tensor.layout == torch.strided and 0 < size <= _LARGEST:
            kept.append(device.upload(torch.full((size,), pattern, dtype=torch.uint8)))
    device.synchronize()
    kept.clear()


def still_poisoned(first: Tensor, second: Tensor, expected: Tensor) -> int:
    """Elements that hold the first pattern in one run and the second in the other.

    All tensors are dense, on the CPU and of the same shape and dtype.
    """
    if first.dtype == torch.bool or first.element_size() < 2:
        return 0  # one byte alone is a likely value
    if expected.shape != first.shape or not first.numel():
        return 0
    both = _marked(first, PATTERNS[0])
    return int((both & _marked(second, PATTERNS[1])).sum()) if bool(both.any()) else 0


def _marked(tensor: Tensor, pattern: int) -> Tensor:
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype)
    flat.copy_(tensor.reshape(-1))
    return (flat.view(torch.uint8).reshape(-1, tensor.element_size()) == pattern).all(-1)
