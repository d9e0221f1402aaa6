"""Positions are judged by what they select: among equal values, any position is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from scanner.records import OpCall

__all__ = ["CHOOSING", "selects_the_same"]

Select = Callable[[Tensor, Tensor, Mapping[str, Any]], Tensor]


def _along_dim(source: Tensor, index: Tensor, given: Mapping[str, Any]) -> Tensor:
    dim = given.get("dim")
    if dim is None:
        return source.reshape(-1)[index]
    if not source.dim():
        return source.expand(index.shape)
    if index.dim() < source.dim():
        return source.gather(int(dim), index.unsqueeze(int(dim))).squeeze(int(dim))
    return source.gather(int(dim), index)


def _in_window(source: Tensor, index: Tensor, given: Mapping[str, Any]) -> Tensor:
    """Pooling positions count through the flattened spatial dimensions."""
    spatial = 3 if "3d" in given["op"] else 2
    lead = source.dim() - spatial
    flat = source.flatten(lead)
    return flat.gather(lead, index.flatten(lead)).reshape(index.shape)


_SELECTORS: dict[str, tuple[str, Select]] = {
    **dict.fromkeys(("argmax", "argmin"), ("0", _along_dim)),
    **dict.fromkeys(("max", "min", "median", "nanmedian", "mode"), ("1", _along_dim)),
    **dict.fromkeys(("kthvalue", "topk", "cummax", "cummin", "sort"), ("1", _along_dim)),
    "argsort": ("0", _along_dim),
    **dict.fromkeys(
        (
            "max_pool2d_with_indices",
            "max_pool3d_with_indices",
            "adaptive_max_pool2d",
            "adaptive_max_pool3d",
            "fractional_max_pool2d",
            "fractional_max_pool3d",
        ),
        ("1", _in_window),
    ),
}
"""Family → the output that holds positions, and how they select."""

CHOOSING = frozenset(_SELECTORS)
"""Families of ops that choose among values."""
_PERMUTING = frozenset({"sort", "argsort", "topk"})


def selects_the_same(
    family: str, call: OpCall, output: str, source: Tensor, device: Tensor, cpu: Tensor
) -> bool:
    """Whether two integer outputs, which differ, stand for the same values of `source`.

    A stable sort leaves no choice.
    """
    name, select = _SELECTORS.get(family, ("", _along_dim))
    names = {name, "indices"} if name == "1" else {name}
    if output not in names or call.attributes.get("stable") or device.shape != cpu.shape:
        return False
    given = {**call.attributes, "op": call.op}
    try:
        ours, theirs = select(source, device.long(), given), select(source, cpu.long(), given)
    except (RuntimeError, IndexError):
        return False  # out of range: certainly wrong
    if family in _PERMUTING and not _distinct(device, given):
        return False
    return bool(((ours == theirs) | ((ours != ours) & (theirs != theirs))).all())


def _distinct(index: Tensor, given: Mapping[str, Any]) -> bool:
    """No position twice in a line."""
    if not index.dim() or not index.numel():
        return True
    lines = index.sort(int(given.get("dim", -1))).values
    return bool((lines.diff(dim=int(given.get("dim", -1))) != 0).all())
