"""Arithmetic of strides: which elements of a storage a view covers, and how to write them once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["covered", "extent", "independent"]


def extent(shape: Sequence[int], stride: Sequence[int], offset: int) -> int:
    """Elements that a storage needs to hold the view."""
    if 0 in shape:
        return offset
    return offset + 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def independent(tensor: Tensor) -> Tensor | None:
    """The part of a view in which each element lies alone, or None when there is no simple one.

    Expanded dimensions (stride 0) are cut to one element, so that writing the rest writes all.
    """
    if tensor.is_contiguous():
        return tensor
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    shape = tuple(1 if step == 0 and size > 1 else size for size, step in steps)
    stride = tensor.stride()
    if _overlaps(shape, stride):
        return None
    return tensor.as_strided(shape, stride, tensor.storage_offset())


def _overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two elements may share a place: sufficient conditions only, so None is safe."""
    reach = 0
    for step, size in sorted((step, size) for size, step in zip(shape, stride, strict=True)):
        if size <= 1:
            continue
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def covered(storage: Tensor, views: Sequence[Tensor]) -> Tensor:
    """Boolean mask over the storage: which elements some view of its dtype covers."""
    mask = torch.zeros(storage.numel(), dtype=torch.bool)
    for view in views:
        if view.dtype != storage.dtype:
            mask[:] = True  # a reinterpreting view: no element is known to be free
            continue
        places = mask.as_strided(view.shape, view.stride(), view.storage_offset())
        for dim, step in enumerate(view.stride()):
            places = places.narrow(dim, 0, 1) if step == 0 and view.shape[dim] else places
        _mark(mask, places)
    return mask


def _mark(mask: Tensor, places: Tensor) -> None:
    if independent(places) is not None:
        places.fill_(True)
        return
    index = torch.arange(mask.numel())
    index = index.as_strided(places.shape, places.stride(), places.storage_offset())
    mask[index.reshape(-1)] = True
