"""Copies tensors between devices with everything a configuration is made of.

`Tensor.to` makes overlapping and expanded views dense and tears aliases apart, so a kernel that
mishandles them would never see one. Here the storage is copied once, byte for byte, and every
tensor is laid over the copy as it lay over the original.
"""

from __future__ import annotations

import torch

__all__ = ["copy_all", "lay_over", "whole"]


def copy_all(tensors: list[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Copies of `tensors` on `device`, detached, aliasing each other as the originals do.

    Keeps dtype, shape, strides, storage offset, values outside the view, and the lazy conjugate
    and negative bits. A layout other than strided has no storage to share and is copied by value.
    """
    copies: dict[int, torch.UntypedStorage] = {}
    return [
        lay_over(tensor, _copied(tensor, device, copies))
        if tensor.layout is torch.strided
        else tensor.detach().to(device, copy=True)
        for tensor in tensors
    ]


def _copied(
    tensor: torch.Tensor, device: torch.device, copies: dict[int, torch.UntypedStorage]
) -> torch.UntypedStorage:
    storage = tensor.untyped_storage()
    key = storage._cdata
    if key not in copies:
        copies[key] = whole(tensor, torch.uint8).to(device, copy=True).untyped_storage()
    return copies[key]


def whole(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor's storage as one line of elements."""
    return torch.empty(0, dtype=dtype, device=tensor.device).set_(tensor.untyped_storage())


def lay_over(
    tensor: torch.Tensor, storage: torch.UntypedStorage, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """A tensor over the storage, with shape, strides, offset and lazy bits of the given one."""
    bare = torch.empty(0, dtype=dtype or tensor.dtype, device=storage.device)
    view = bare.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())
    # The bits are flags of the view: its storage holds the values before they are applied.
    if tensor.is_conj():
        view = view.conj()
    return torch._neg_view(view) if tensor.is_neg() else view
