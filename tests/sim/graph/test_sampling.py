from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import assert_equal, compute

NAME = (
    "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:"
    "alignCorners:paddingMode:{}:constantValue:name:"
)
BILINEAR, NEAREST = NAME.format("samplingMode"), NAME.format("nearestRoundingMode")
REFLECT, SYMMETRIC, CLAMP, ZERO = 1, 2, 3, 4
TO_EVEN = 4


def grid(batch: int) -> Tensor:
    """Coordinates in and around the image."""
    return torch.rand(batch, 6, 5, 2, generator=torch.Generator().manual_seed(2)) * 6 - 3


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_sampling_is_torchs(mode: str, padding: str, corners: bool) -> None:
    image = torch.randn(2, 3, 4, 7, generator=torch.Generator().manual_seed(1))
    reflection = REFLECT if corners else SYMMETRIC
    number = {"zeros": ZERO, "border": CLAMP, "reflection": reflection}[padding]
    selector, how = (BILINEAR, 1) if mode == "bilinear" else (NEAREST, TO_EVEN)
    found = compute(selector, image, grid(2), 0, True, False, corners, number, how, 0.0)
    expected = functional.grid_sample(image, grid(2), mode, padding, corners)
    torch.testing.assert_close(found, expected)


def test_by_hand() -> None:
    """Pixels [1, 3] at x = 0 (half way) and at x = 3 (outside: the constant)."""
    image = torch.tensor([[[[1.0, 3.0]]]])
    places = torch.tensor([[[[0.0, 0.0], [3.0, 0.0]]]])
    found = compute(BILINEAR, image, places, 0, True, False, True, 0, 1, -5.0)
    assert_equal(found, torch.tensor([[[[2.0, -5.0]]]]))
    pixels = torch.tensor([[[[0.5, 0.0], [1.0, 0.0]]]])
    found = compute(BILINEAR, image, pixels, 0, False, False, True, CLAMP, 1, 0.0)
    assert_equal(found, torch.tensor([[[[2.0, 3.0]]]]))
    found = compute(BILINEAR, image, pixels, 0, False, False, True, CLAMP, 0, 0.0)
    assert_equal(found, torch.tensor([[[[3.0, 3.0]]]]))


def test_what_is_not_modelled_is_refused() -> None:
    image, places = torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 1, 2)
    with pytest.raises(Unsupported, match="relative"):
        compute(BILINEAR, image, places, 0, True, True, True, ZERO, 1, 0.0)
    with pytest.raises(Unsupported, match="not finite"):
        compute(BILINEAR, image, places / 0, 0, True, False, True, ZERO, 1, 0.0)
    with pytest.raises(Unsupported, match="paddingMode 5"):
        compute(BILINEAR, image, places, 0, True, False, True, 5, 1, 0.0)
