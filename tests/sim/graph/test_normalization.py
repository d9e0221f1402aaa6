from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.sim.graph.calls import assert_equal, compute

FORWARD = "normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon:name:"
BETA = "normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes:name:"
GAMMA = (
    "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:"
    "reductionAxes:epsilon:name:"
)
SOURCE = (
    "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:"
    "gammaTensor:gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon:name:"
)
AXES = (0, 2)
EPSILON = 0.25


def test_by_hand() -> None:
    """(3 − 1) / sqrt(3.75 + 0.25) = 1, times 5, plus 2."""
    one, three = torch.tensor([1.0]), torch.tensor([3.0])
    variance = torch.tensor([3.75])
    found = compute(FORWARD, three, one, variance, torch.tensor([5.0]), torch.tensor([2.0]), 0.25)
    assert_equal(found, torch.tensor([7.0]))
    assert_equal(compute(FORWARD, three, one, variance, None, None, 0.25), one)


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("affine", [True, False])
def test_gradients_are_those_of_a_batch_norm(affine: bool) -> None:
    source, incoming = drawn(4, 3, 5, seed=1), drawn(4, 3, 5, seed=2)
    gamma, beta = drawn(3, seed=3), drawn(3, seed=4)
    operands = [item.clone().requires_grad_() for item in (source, gamma, beta)]
    weight, bias = operands[1:] if affine else (torch.ones(3), None)
    expected = functional.batch_norm(operands[0], None, None, weight, bias, True, 0.0, EPSILON)
    mean = source.mean(AXES, keepdim=True)
    variance = source.var(AXES, unbiased=False, keepdim=True)
    shaped = [item.reshape(1, 3, 1) if affine else None for item in (gamma, beta)]
    found = compute(FORWARD, source, mean, variance, *shaped, EPSILON)
    torch.testing.assert_close(found, expected.detach())
    beta_gradient = compute(BETA, incoming, source, AXES)
    gamma_gradient = compute(GAMMA, incoming, source, mean, variance, AXES, EPSILON)
    expected.backward(incoming)
    given = (gamma_gradient, beta_gradient) if affine else (None, None)
    gradient = compute(SOURCE, incoming, source, mean, variance, shaped[0], *given, AXES, EPSILON)
    torch.testing.assert_close(gradient, operands[0].grad)
    assert beta_gradient.shape == gamma_gradient.shape == (1, 3, 1)
    if affine:
        torch.testing.assert_close(gamma_gradient.flatten(), operands[1].grad)
        torch.testing.assert_close(beta_gradient.flatten(), operands[2].grad)


def test_half_precision_is_rounded_once() -> None:
    """1000 / sqrt(0.75) = 1154.70; with 1 / sqrt(0.75) rounded to 1.1543 it would be 1154."""
    source, mean, variance, gamma = (
        torch.tensor([number], dtype=torch.float16) for number in (1.0, 0.0, 0.5, 1000.0)
    )
    found = compute(FORWARD, source, mean, variance, gamma, None, EPSILON)
    assert_equal(found, torch.tensor([1155.0], dtype=torch.float16))
