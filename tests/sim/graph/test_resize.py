from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.ops.resize import round_coordinates
from tests.sim.graph.calls import assert_equal, compute

NCHW, NHWC, CHW, HW = 0, 1, 4, 6
NEAREST = (
    "resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:layout:name:"
)
NEAREST_SCALED = (
    "resizeNearestWithTensor:sizeTensor:scaleOffsetTensor:nearestRoundingMode:layout:name:"
)
NEAREST_GRADIENT = (
    "resizeNearestWithGradientTensor:input:nearestRoundingMode:centerResult:alignCorners:layout:"
    "name:"
)
BILINEAR = "resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout:name:"
BILINEAR_SCALED = "resizeBilinearWithTensor:sizeTensor:scaleOffsetTensor:layout:name:"
BILINEAR_GRADIENT = "resizeBilinearWithGradientTensor:input:centerResult:alignCorners:layout:name:"
PLAIN = "resizeTensor:sizeTensor:mode:centerResult:alignCorners:layout:name:"
FLOOR, PREFER_CEIL = 3, 0


def size(height: int, width: int) -> Tensor:
    return torch.tensor([height, width], dtype=torch.int32)


def images(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


def test_rounding_modes() -> None:
    """At −1.5, −0.5, 0.5, 1.5, 1.2 by MPSGraphResizeNearestRoundingMode."""
    at = torch.tensor([-1.5, -0.5, 0.5, 1.5, 1.2])
    expected = [
        [-1, 0, 1, 2, 1],
        [-2, -1, 0, 1, 1],
        [-1, 0, 1, 2, 2],
        [-2, -1, 0, 1, 1],
        [-2, 0, 0, 2, 1],
        [-1, -1, 1, 1, 1],
    ]
    for mode, wanted in enumerate(expected):
        assert round_coordinates(at, mode).tolist() == wanted
    with pytest.raises(Unsupported, match="nearestRoundingMode 6"):
        round_coordinates(at, 6)


def test_by_hand() -> None:
    """Two pixels to four: centres at −0.25, 0.25, 0.75, 1.25; corners at 0, ⅓, ⅔, 1."""
    row = torch.tensor([[0.0, 12.0]])
    centred = compute(BILINEAR, row, size(1, 4), True, False, HW)
    assert_equal(centred, torch.tensor([[0.0, 3, 9, 12]]))
    corners = compute(BILINEAR, row, size(1, 4), True, True, HW)
    torch.testing.assert_close(corners, torch.tensor([[0.0, 4, 8, 12]]))
    plain = compute(BILINEAR, row, size(1, 4), False, False, HW)
    assert_equal(plain, torch.tensor([[0.0, 6, 12, 12]]))
    nearest = compute(NEAREST, row, size(1, 4), PREFER_CEIL, False, False, HW)
    assert_equal(nearest, torch.tensor([[0.0, 12, 12, 12]]))


@pytest.mark.parametrize("wanted", [(7, 3), (2, 9), (5, 4)])
@pytest.mark.parametrize("corners", [True, False])
def test_bilinear_is_torchs(wanted: tuple[int, int], corners: bool) -> None:
    source = images(2, 3, 5, 4)
    operand = source.clone().requires_grad_()
    expected = functional.interpolate(operand, wanted, mode="bilinear", align_corners=corners)
    found = compute(BILINEAR, source, size(*wanted), True, corners, NCHW)
    torch.testing.assert_close(found, expected.detach())
    last = compute(BILINEAR, source.permute(0, 2, 3, 1), size(*wanted), True, corners, NHWC)
    torch.testing.assert_close(last.permute(0, 3, 1, 2), found)
    incoming = images(2, 3, *wanted)
    (gradient,) = torch.autograd.grad(expected, operand, incoming)
    found = compute(BILINEAR_GRADIENT, incoming, source, True, corners, NCHW)
    torch.testing.assert_close(found, gradient)


@pytest.mark.parametrize(
    ("mode", "center", "rounding"),
    [("nearest", False, FLOOR), ("nearest-exact", True, PREFER_CEIL)],
)
def test_nearest_is_torchs(mode: str, center: bool, rounding: int) -> None:
    source = images(2, 3, 5, 4)
    operand = source.clone().requires_grad_()
    expected = functional.interpolate(operand, (8, 3), mode=mode)
    found = compute(NEAREST, source, size(8, 3), rounding, center, False, NCHW)
    assert_equal(found, expected.detach())
    incoming = images(2, 3, 8, 3)
    (gradient,) = torch.autograd.grad(expected, operand, incoming)
    found = compute(NEAREST_GRADIENT, incoming, source, rounding, center, False, NCHW)
    torch.testing.assert_close(found, gradient)


def test_scale_and_offset_place_the_result() -> None:
    """result = image · 2 + ½ undoes to (result − ½) / 2, the centred grid of twice the size."""
    source = images(3, 4, 5)
    doubled = torch.tensor([2.0, 2.0, 0.5, 0.5])
    expected = compute(BILINEAR, source, size(8, 10), True, False, CHW)
    found = compute(BILINEAR_SCALED, source, size(8, 10), doubled, CHW)
    torch.testing.assert_close(found, expected)
    expected = compute(NEAREST, source, size(8, 10), PREFER_CEIL, True, False, CHW)
    assert_equal(compute(NEAREST_SCALED, source, size(8, 10), doubled, PREFER_CEIL, CHW), expected)


def test_the_older_method_has_a_mode() -> None:
    source = images(1, 1, 3, 3)
    for mode, expected in ((0, PREFER_CEIL), (1, None)):
        found = compute(PLAIN, source, size(5, 5), mode, True, False, NCHW)
        if expected is None:
            wanted = compute(BILINEAR, source, size(5, 5), True, False, NCHW)
        else:
            wanted = compute(NEAREST, source, size(5, 5), expected, True, False, NCHW)
        assert_equal(found, wanted)
    with pytest.raises(Unsupported, match="resize mode 2"):
        compute(PLAIN, source, size(5, 5), 2, True, False, NCHW)


def test_shapes_are_known_before_the_run() -> None:
    source = torch.empty(2, 3, 5, 4, device="meta")
    assert compute(BILINEAR, source, size(7, 3), True, False, NCHW).shape == (2, 3, 7, 3)
    incoming = torch.empty(2, 3, 7, 3, device="meta")
    assert compute(BILINEAR_GRADIENT, incoming, source, True, False, NCHW).shape == source.shape
