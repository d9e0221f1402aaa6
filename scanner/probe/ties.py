"""Gradients of ops that choose among equal values.

Which of them was chosen, and so receives the gradient, is open; what all of them receive together
is not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from scanner.probe.selection import CHOOSING
from scanner.records import OpCall

__all__ = ["evened"]

Change = Callable[[Tensor], Tensor]


def evened(family: str, call: OpCall, name: str, source: Tensor) -> Change | None:
    """Spreads a gradient evenly over equal, competing values of `source`, the argument `name`.

    None where nothing ties, where the op chooses nothing of this argument, and for a stable sort,
    which leaves no choice.
    """
    chosen = family in CHOOSING and name == "self" and "other" not in _arguments(call)
    if not chosen or call.attributes.get("stable") or not source.numel():
        return None
    lines, whole = _lines(family, call, source)
    keys, order = lines(source).sort(-1)
    steps = torch.nn.functional.pad((keys.diff(dim=-1) != 0).long().cumsum(-1), (1, 0))
    if bool((steps[..., -1] == keys.shape[-1] - 1).all()):
        return None
    group = torch.empty_like(order).scatter_(-1, order, steps)
    count = torch.zeros_like(group).scatter_add_(-1, group, torch.ones_like(group))

    def spread(gradient: Tensor) -> Tensor:
        values = lines(gradient)
        total = torch.zeros_like(values).scatter_add_(-1, group, values)
        return whole((total / count.clamp(min=1)).gather(-1, group))

    return spread


def _arguments(call: OpCall) -> set[str]:
    return {spec.name for spec in call.inputs}


def _lines(family: str, call: OpCall, source: Tensor) -> tuple[Change, Change]:
    """How to lay values that compete along the last dimension, and back."""
    shape, dim = source.shape, call.attributes.get("dim")
    if "pool" in family:
        lead = source.dim() - (3 if "3d" in family else 2)
        return (lambda x: x.flatten(lead)), (lambda x: x.reshape(shape))
    if isinstance(dim, int) and source.dim():
        return (lambda x: x.movedim(dim, -1)), (lambda x: x.movedim(-1, dim))
    return (lambda x: x.reshape(1, -1)), (lambda x: x.reshape(shape))
