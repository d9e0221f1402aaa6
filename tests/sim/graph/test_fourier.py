from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.recording import Descriptor
from tests.sim.graph.calls import compute

TRANSFORM = "fastFourierTransformWithTensor:axes:descriptor:name:"
TO_HERMITEAN = "realToHermiteanFFTWithTensor:axes:descriptor:name:"
TO_REAL = "HermiteanToRealFFTWithTensor:axes:descriptor:name:"
NONE, SIZE, UNITARY = range(3)


def descriptor(mode: int, inverse: bool, odd: bool = False) -> Descriptor:
    found = {"scalingMode": mode, "inverse": inverse, "roundToOddHermitean": odd}
    return Descriptor("MPSGraphFFTDescriptor", found)


def by_definition(values: Tensor, inverse: bool, scale: float) -> Tensor:
    count = len(values)
    sign = 2j if inverse else -2j
    at = torch.arange(count)
    phases = torch.exp(sign * torch.pi * at[:, None] * at / count)
    return (phases @ values.to(phases.dtype)) * scale


@pytest.mark.parametrize("inverse", [True, False])
@pytest.mark.parametrize(("mode", "scale"), [(NONE, 1), (SIZE, 1 / 5), (UNITARY, 5**-0.5)])
def test_sign_and_scale_are_independent(mode: int, scale: float, inverse: bool) -> None:
    values = torch.tensor([1 + 2j, 3, -1j, 2, 0.5])
    expected = by_definition(values, inverse, scale)
    found = compute(TRANSFORM, values, (0,), descriptor(mode, inverse))
    torch.testing.assert_close(found, expected)
    real = values.real.contiguous()
    half = compute(TO_HERMITEAN, real, (0,), descriptor(mode, inverse))
    expected = by_definition(real, inverse, scale)
    torch.testing.assert_close(half, expected[:3])
    assert not half.is_conj()


@pytest.mark.parametrize("inverse", [True, False])
@pytest.mark.parametrize("count", [5, 6])
def test_hermitean_halves_make_real_numbers(count: int, inverse: bool) -> None:
    values = torch.randn(3, count, generator=torch.Generator().manual_seed(0))
    half = compute(TO_HERMITEAN, values, (0, 1), descriptor(UNITARY, not inverse))
    assert half.shape == (3, count // 2 + 1)
    described = descriptor(UNITARY, inverse, odd=count % 2 == 1)
    torch.testing.assert_close(compute(TO_REAL, half, (0, 1), described), values)


def test_only_the_last_four_axes() -> None:
    with pytest.raises(Unsupported, match="FFT along axis 0 of 5"):
        compute(TRANSFORM, torch.zeros(1, 1, 1, 1, 2), (0,), descriptor(NONE, False))
    with pytest.raises(Unsupported, match="scaling mode 3"):
        compute(TRANSFORM, torch.zeros(2), (0,), descriptor(3, False))
