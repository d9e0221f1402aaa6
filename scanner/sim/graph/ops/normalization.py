"""Normalization by a mean and variance that are given, and its gradients.

From MPSGraphNormalizationOps.h: (x − mean) / sqrt(variance + epsilon) · gamma + beta. Reduced
axes stay with length 1. Each method is one kernel, which rounds once: half precision is widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods

METHODS = Methods()

_GAMMA = (
    "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:"
    "reductionAxes:epsilon:name:"
)
_SOURCE = (
    "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:"
    "gammaTensor:gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon:name:"
)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _optional(call: Arguments, part: str) -> Tensor | None:
    found = call.optional(part)
    return None if found is None else _wide(found)


def _scale(call: Arguments) -> Tensor:
    return (_wide(call.tensor("varianceTensor")) + call.number("epsilon")).rsqrt()


def _normalized(call: Arguments, part: str = "sourceTensor") -> Tensor:
    return (_wide(call.tensor(part)) - _wide(call.tensor("meanTensor"))) * _scale(call)


def _axes(call: Arguments, rank: int) -> tuple[int, ...]:
    given: Sequence[int] = (
        call.integers("reductionAxes") if "reductionAxes" in call else range(rank)
    )
    return tuple(axis % rank for axis in given)


def _summed(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    return tensor.sum(axes, keepdim=True) if axes else tensor.clone()


@METHODS.define(
    "normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon:name:"
)
def normalize(call: Arguments) -> Tensor:
    """Gamma and beta may be nil: 1 and 0."""
    found = _normalized(call, "normalizationWithTensor")
    gamma, beta = _optional(call, "gammaTensor"), _optional(call, "betaTensor")
    found = found if gamma is None else found * gamma
    found = found if beta is None else found + beta
    return found.to(call.tensor("normalizationWithTensor").dtype)


@METHODS.define(
    "normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes:name:"
)
def beta_gradient(call: Arguments) -> Tensor:
    """Sum of the incoming gradient."""
    incoming = call.tensor("normalizationBetaGradientWithIncomingGradientTensor")
    return _summed(_wide(incoming), _axes(call, incoming.dim())).to(incoming.dtype)


@METHODS.define(_GAMMA)
def gamma_gradient(call: Arguments) -> Tensor:
    """Sum of the incoming gradient times the normalized source."""
    incoming = call.tensor("normalizationGammaGradientWithIncomingGradientTensor")
    found = _wide(incoming) * _normalized(call)
    return _summed(found, _axes(call, found.dim())).to(incoming.dtype)


@METHODS.define(_SOURCE)
def source_gradient(call: Arguments) -> Tensor:
    """Gradient of the source, through its mean and variance over the axes as well.

    The sums over the axes are what host code gives as gradients of gamma and beta. A nil one is
    a parameter without gradient; its sum is still part of the derivative.
    """
    given = call.tensor("normalizationGradientWithIncomingGradientTensor")
    incoming, normalized = _wide(given), _normalized(call)
    axes = _axes(call, incoming.dim())
    count = prod(incoming.shape[axis] for axis in axes)
    gamma_sum = _optional(call, "gammaGradientTensor")
    beta_sum = _optional(call, "betaGradientTensor")
    gamma_sum = _summed(incoming * normalized, axes) if gamma_sum is None else gamma_sum
    beta_sum = _summed(incoming, axes) if beta_sum is None else beta_sum
    found = (incoming - (beta_sum + normalized * gamma_sum) / count) * _scale(call)
    gamma = _optional(call, "gammaTensor")
    return (found if gamma is None else found * gamma).to(given.dtype)
