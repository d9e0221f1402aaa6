"""Gradients of a forward method by torch's own differentiation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from scanner.sim.graph.methods import Unsupported

__all__ = ["pullback"]


def pullback(forward: Callable[[Tensor], Tensor], source: Tensor, incoming: Tensor) -> Tensor:
    """The gradient with respect to `source` of a forward whose result has gradient `incoming`.

    Unsupported when the incoming gradient has not the forward's shape.
    """
    with torch.inference_mode(False), torch.enable_grad():
        operand = source.detach().clone().requires_grad_()
        result = forward(operand)
        if result.shape != incoming.shape:
            shapes = f"{tuple(incoming.shape)}, the forward gives {tuple(result.shape)}"
            raise Unsupported(f"an incoming gradient of shape {shapes}")
        (gradient,) = torch.autograd.grad(result, operand, incoming.detach().to(result.dtype))
    return gradient
