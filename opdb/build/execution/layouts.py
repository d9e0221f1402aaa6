"""A call's tensors in other layouts, with what a layout can do to a kernel's choice of path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["LAYOUTS", "RESHAPED", "relaid"]

RESHAPED = frozenset({"empty", "0-dim"})
"""Layouts that change shapes."""


def _strided(tensor: Tensor) -> Tensor:
    """Every second element of the last dimension."""
    if not tensor.dim():
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    return wide[..., ::2].copy_(tensor)


def _offset(tensor: Tensor) -> Tensor:
    flat = tensor.new_zeros(tensor.numel() + 3)
    return flat[3:].view(tensor.shape).copy_(tensor)


def _expanded(tensor: Tensor) -> Tensor:
    """The first slice, repeated with stride 0."""
    return tensor[:1].expand(tensor.shape) if tensor.dim() else tensor


def _empty(tensor: Tensor) -> Tensor:
    return tensor[:0] if tensor.dim() else tensor


def _point(tensor: Tensor) -> Tensor:
    return tensor.flatten()[0].clone() if tensor.numel() else tensor


LAYOUTS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "strided": _strided,
    "offset": _offset,
    "expanded": _expanded,
    "empty": _empty,
    "0-dim": _point,
}


def relaid(given: Any, main: Tensor, layout: str) -> Any | None:
    """The arguments, tensors of the main operand's shape in another layout; None if none changes.

    Tensors of other shapes stay as they are, so shapes are only changed where there are none: the
    CPU's kernels trust what the Python above them has checked.
    """
    change = LAYOUTS[layout]
    others = any(leaf.shape != main.shape for leaf in tree_leaves(given) if _is_tensor(leaf))
    if others and layout in RESHAPED:
        return None
    changed: list[bool] = []

    def renew(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.layout != torch.strided:
            return value
        if value.shape != main.shape:
            return value.clone()
        made = change(value)
        changed.append(_differs(made, value))
        return made

    renewed = tree_map(renew, given)
    return renewed if any(changed) else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _differs(made: Tensor, value: Tensor) -> bool:
    same = (made.shape, made.stride(), made.storage_offset()) == (
        value.shape,
        value.stride(),
        value.storage_offset(),
    )
    return not same
