from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.recording import Descriptor
from tests.sim.graph.calls import assert_equal, compute

MAXIMUM = "maxPooling2DWithSourceTensor:descriptor:name:"
INDICES = "maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:"
MAXIMUM_GRADIENT = "maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:"
AVERAGE = "avgPooling2DWithSourceTensor:descriptor:name:"
AVERAGE_GRADIENT = "avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:"


def descriptor(
    size: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    **more: Any,
) -> Descriptor:
    """Height before width; padding is top, bottom, left, right."""
    names = ("Top", "Bottom", "Left", "Right")
    found = {f"padding{name}": side for name, side in zip(names, padding, strict=True)}
    found |= {"kernelHeight": size[0], "kernelWidth": size[1], "paddingStyle": 0, "dataLayout": 0}
    found |= {"strideInY": stride[0], "strideInX": stride[1]}
    found |= {"dilationRateInY": dilation[0], "dilationRateInX": dilation[1]}
    return Descriptor("MPSGraphPooling2DOpDescriptor", found | more)


def image(*rows: list[float]) -> Tensor:
    return torch.tensor([[list(rows)]])


def distinct(*shape: int) -> Tensor:
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(3))
    return order.float().reshape(shape) - count // 2


def test_a_rounded_up_count_adds_a_partial_window() -> None:
    source = image([1.0, 5, 2, -4])
    described = descriptor((1, 3), (1, 2), ceilMode=True, returnIndicesMode=2)
    values, places = compute(INDICES, source, described, outputs=2)
    assert_equal(values, image([5.0, 2]))
    assert_equal(places, torch.tensor([[[[1, 2]]]], dtype=torch.int32))
    floor = compute(MAXIMUM, source, descriptor((1, 3), (1, 2)))
    assert_equal(floor, image([5.0]))


def test_padding_is_never_the_maximum_nor_its_place() -> None:
    source = image([-3.0, -torch.inf], [-torch.inf, -2.0])
    described = descriptor((2, 2), (2, 2), (1, 1, 1, 1), returnIndicesMode=2)
    values, places = compute(INDICES, source, described, outputs=2)
    assert_equal(values, source)
    assert_equal(places.flatten(), torch.tensor([0, 1, 2, 3], dtype=torch.int32))


@pytest.mark.parametrize(("counted", "expected"), [(True, [1.0, 3.0]), (False, [2.0, 3.0])])
def test_an_average_counts_padding_or_not(counted: bool, expected: list[float]) -> None:
    """[2, 3, 3] with a zero on the left: (0 + 2) / 2, or 2 / 1; then (3 + 3) / 2."""
    described = descriptor((1, 2), (1, 2), (0, 0, 1, 0), includeZeroPadToAverage=counted)
    assert_equal(compute(AVERAGE, image([2.0, 3, 3]), described), image(expected))


@settings(max_examples=15, deadline=None)
@given(
    size=st.tuples(st.integers(2, 3), st.integers(2, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pad=st.integers(0, 1),
    ceil=st.booleans(),
)
def test_pooling_is_torchs(
    size: tuple[int, int], stride: tuple[int, int], pad: int, ceil: bool
) -> None:
    source = distinct(2, 3, 7, 8)
    padding = (pad, pad, pad, pad)
    described = descriptor(
        size, stride, padding, ceilMode=ceil, returnIndicesMode=2, returnIndicesDataType="int64"
    )
    operand = source.clone().requires_grad_()
    expected, wanted = functional.max_pool2d(
        operand, size, stride, pad, 1, ceil, return_indices=True
    )
    try:
        values, places = compute(INDICES, source, described, outputs=2)
    except Unsupported:
        assert ceil
        return  # torch leaves windows out that MPSGraph would fill with nothing
    assert_equal(values, expected.detach())
    assert_equal(places, wanted)
    incoming = distinct(*expected.shape)
    (gradient,) = torch.autograd.grad(expected, operand, incoming)
    assert_equal(compute(MAXIMUM_GRADIENT, incoming, source, described), gradient)


@pytest.mark.parametrize("counted", [True, False])
def test_averages_and_their_gradient_are_torchs(counted: bool) -> None:
    source = distinct(2, 3, 6, 5)
    described = descriptor((3, 2), (2, 1), (1, 1, 1, 1), includeZeroPadToAverage=counted)
    operand = source.clone().requires_grad_()
    expected = functional.avg_pool2d(operand, (3, 2), (2, 1), 1, False, counted)
    torch.testing.assert_close(compute(AVERAGE, source, described), expected.detach())
    incoming = distinct(*expected.shape)
    (gradient,) = torch.autograd.grad(expected, operand, incoming)
    torch.testing.assert_close(compute(AVERAGE_GRADIENT, incoming, source, described), gradient)


def test_dilated_maxima_and_channels_last() -> None:
    source = distinct(1, 2, 6, 6)
    described = descriptor((2, 2), dilation=(2, 3), dataLayout=1)
    expected = functional.max_pool2d(source, 2, 1, 0, (2, 3))
    found = compute(MAXIMUM, source.permute(0, 2, 3, 1), described)
    assert_equal(found.permute(0, 3, 1, 2), expected)


def test_a_single_image_needs_no_batch_axis() -> None:
    source = distinct(2, 4, 4)
    for selector in (MAXIMUM, AVERAGE):
        expected = compute(selector, source[None], descriptor((2, 2)))
        assert_equal(compute(selector, source, descriptor((2, 2))), expected[0])


def test_whole_numbers_keep_their_type() -> None:
    source = torch.tensor([[[[-7, -5], [-6, -8]]]], dtype=torch.int32)
    described = descriptor((2, 2), (1, 1), (1, 0, 1, 0))
    expected = torch.tensor([[[[-7, -5], [-6, -5]]]], dtype=torch.int32)
    assert_equal(compute(MAXIMUM, source, described), expected)


def test_what_is_not_documented_is_refused() -> None:
    source = distinct(1, 1, 3, 3)
    with pytest.raises(Unsupported, match="wholly in the padding"):
        compute(MAXIMUM, source, descriptor((1, 1), padding=(1, 0, 0, 0)))
    with pytest.raises(Unsupported, match="returnIndicesMode 1"):
        compute(INDICES, source, descriptor((2, 2), returnIndicesMode=1), outputs=2)
    with pytest.raises(Unsupported, match="incoming gradient of shape"):
        compute(MAXIMUM_GRADIENT, source, source, descriptor((2, 2)))
