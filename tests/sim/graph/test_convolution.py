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

NCHW, NHWC, OIHW, HWIO, NCDHW, OIDHW = 0, 1, 2, 3, 7, 9
FORWARD = "convolution{}WithSourceTensor:weightsTensor:descriptor:name:"
SOURCE = (
    "convolution{}DataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
    "forwardConvolutionDescriptor:name:"
)
WEIGHTS = (
    "convolution{}WeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
    "forwardConvolutionDescriptor:name:"
)
SIDES = {"X": ("Left", "Right"), "Y": ("Top", "Bottom"), "Z": ("Front", "Back")}


def descriptor(
    stride: tuple[int, ...] = (1, 1),
    dilation: tuple[int, ...] = (1, 1),
    padding: tuple[tuple[int, int], ...] = ((0, 0), (0, 0)),
    layouts: tuple[int, int] = (NCHW, OIHW),
    groups: int = 1,
    style: int = 0,
) -> Descriptor:
    """Lists follow the spatial axes, last one X."""
    axes = "ZYX"[-len(stride) :]
    found: dict[str, Any] = {"paddingStyle": style, "groups": groups}
    found |= {"dataLayout": layouts[0], "weightsLayout": layouts[1]}
    for number, axis in enumerate(axes):
        found[f"strideIn{axis}"] = stride[number]
        found[f"dilationRateIn{axis}"] = dilation[number]
        for side, amount in zip(SIDES[axis], padding[number], strict=True):
            found[f"padding{side}"] = amount
    return Descriptor(f"MPSGraphConvolution{len(stride)}DOpDescriptor", found)


def numbers(*shape: int) -> Tensor:
    """Small integers, so that sums are exact."""
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(7)).float()


def test_windows_are_not_flipped_and_padding_has_sides() -> None:
    """[1, 2, 3] with one zero on the left, by [1, 10]: 10, 21, 32."""
    source, weights = torch.tensor([[[[1.0, 2, 3]]]]), torch.tensor([[[[1.0, 10]]]])
    described = descriptor(padding=((0, 0), (1, 0)))
    assert_equal(
        compute(FORWARD.format("2D"), source, weights, described),
        torch.tensor([[[[10.0, 21, 32]]]]),
    )


@pytest.mark.parametrize(("style", "expected"), [(2, [1.0, 2]), (4, [0.0, 2]), (1, [1.0])])
def test_same_padding_puts_the_odd_element_on_its_side(style: int, expected: list[float]) -> None:
    """Windows of 2 with stride 2 over [1, 2, 3], weights [1, 0]: SAME pads after, LOWER before."""
    source, weights = torch.tensor([[[[1.0, 9, 2]]]]), torch.tensor([[[[1.0, 0]]]])
    described = descriptor(stride=(1, 2), style=style)
    found = compute(FORWARD.format("2D"), source, weights, described)
    expected = [0.0, 9] if style == 4 else expected
    assert_equal(found, torch.tensor([[[expected]]]))


def test_layouts_only_rename_axes() -> None:
    source, weights = numbers(2, 3, 5, 4), numbers(6, 3, 3, 2)
    expected = compute(FORWARD.format("2D"), source, weights, descriptor())
    found = compute(
        FORWARD.format("2D"),
        source.permute(0, 2, 3, 1),
        weights.permute(2, 3, 1, 0),
        descriptor(layouts=(NHWC, HWIO)),
    )
    assert_equal(found.permute(0, 3, 1, 2), expected)
    gradient = numbers(*expected.shape)
    first = compute(WEIGHTS.format("2D"), gradient, source, (6, 3, 3, 2), descriptor())
    second = compute(
        WEIGHTS.format("2D"),
        gradient.permute(0, 2, 3, 1),
        source.permute(0, 2, 3, 1),
        (3, 2, 3, 6),
        descriptor(layouts=(NHWC, HWIO)),
    )
    assert_equal(second.permute(3, 2, 0, 1), first)


@settings(max_examples=15, deadline=None)
@given(
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    groups=st.sampled_from([1, 2]),
)
def test_gradients_are_those_of_the_forward(
    stride: tuple[int, int], dilation: tuple[int, int], padding: tuple[int, int], groups: int
) -> None:
    source, weights = numbers(2, 4, 7, 6), numbers(6, 4 // groups, 3, 2)
    described = descriptor(stride, dilation, tuple((side, side) for side in padding), groups=groups)
    operands = [source.clone().requires_grad_(), weights.clone().requires_grad_()]
    expected = functional.conv2d(*operands, None, stride, padding, dilation, groups)
    gradient = numbers(*expected.shape)
    wanted = torch.autograd.grad(expected, operands, gradient)
    assert_equal(compute(FORWARD.format("2D"), source, weights, described), expected.detach())
    shapes = tuple(source.shape), tuple(weights.shape)
    found = compute(SOURCE.format("2D"), gradient, weights, shapes[0], described)
    assert_equal(found, wanted[0])
    found = compute(WEIGHTS.format("2D"), gradient, source, shapes[1], described)
    assert_equal(found, wanted[1])


def test_a_transposed_convolution_is_an_input_gradient() -> None:
    source, weights = numbers(1, 4, 3, 3), numbers(4, 2, 3, 3)
    expected = functional.conv_transpose2d(source, weights, None, 2, 1, output_padding=1)
    described = descriptor((2, 2), padding=((1, 1), (1, 1)))
    found = compute(SOURCE.format("2D"), source, weights, tuple(expected.shape), described)
    assert_equal(found, expected)


def test_three_dimensions() -> None:
    source, weights = numbers(2, 2, 4, 5, 3), numbers(3, 2, 2, 3, 1)
    described = descriptor((1, 2, 1), (1, 1, 1), ((0, 0), (1, 1), (0, 0)), (NCDHW, OIDHW))
    expected = functional.conv3d(source, weights, None, (1, 2, 1), (0, 1, 0))
    assert_equal(compute(FORWARD.format("3D"), source, weights, described), expected)
    gradient = numbers(*expected.shape)
    found = compute(SOURCE.format("3D"), gradient, weights, tuple(source.shape), described)
    assert_equal(found, torch.nn.grad.conv3d_input(source.shape, weights, gradient, (1, 2, 1),
                                                   (0, 1, 0)))  # fmt: skip


def depthwise_descriptor() -> Descriptor:
    """As host code fills it: images [N, C, H, W], N in the place of the depth."""
    return Descriptor(
        "MPSGraphDepthwiseConvolution3DOpDescriptor",
        {
            "strides": (1, 2, 1),
            "dilationRates": (1, 1, 1),
            "paddingStyle": 0,
            "paddingValues": (0, 0, 1, 1, 0, 0),
            "channelDimensionIndex": -3,
        },
    )


def test_depthwise_is_a_grouped_convolution() -> None:
    source, weights = numbers(2, 3, 5, 4), numbers(6, 1, 3, 2)
    expected = functional.conv2d(source, weights, None, (2, 1), (1, 0), 1, 3)
    given_weights, described = weights.transpose(0, 1), depthwise_descriptor()
    name = "depthwiseConvolution3D{}:{}:descriptor:name:"
    forward = name.format("WithSourceTensor", "weightsTensor")
    assert_equal(compute(forward, source, given_weights, described), expected)
    gradient = numbers(*expected.shape)
    backward = name.format("DataGradientWithIncomingGradientTensor", "weightsTensor:outputShape")
    found = compute(backward, gradient, given_weights, tuple(source.shape), described)
    assert_equal(found, torch.nn.grad.conv2d_input(source.shape, weights, gradient, (2, 1),
                                                   (1, 0), 1, 3))  # fmt: skip
    backward = name.format("WeightsGradientWithIncomingGradientTensor", "sourceTensor:outputShape")
    found = compute(backward, gradient, source, (1, 6, 3, 2), described)
    wanted = torch.nn.grad.conv2d_weight(source, weights.shape, gradient, (2, 1), (1, 0), 1, 3)
    assert_equal(found.transpose(0, 1), wanted)


def test_shapes_are_known_before_the_run() -> None:
    described = descriptor(padding=((1, 1), (1, 1)))
    source, weights = torch.empty(2, 3, 8, 8, device="meta"), torch.empty(4, 3, 3, 3, device="meta")
    found = compute(FORWARD.format("2D"), source, weights, described)
    assert found.is_meta
    assert found.shape == (2, 4, 8, 8)
    assert compute(SOURCE.format("2D"), found, weights, (2, 3, 8, 8), described).shape[1] == 3


def test_what_is_not_modelled_is_refused() -> None:
    source, weights = numbers(1, 2, 3, 3), numbers(2, 2, 3, 3)
    with pytest.raises(Unsupported, match="padding style 3"):
        compute(FORWARD.format("2D"), source, weights, descriptor(style=3))
    with pytest.raises(Unsupported, match="rank 5 in layout NCHW"):
        compute(FORWARD.format("2D"), source[None], weights, descriptor())
    with pytest.raises(Unsupported, match="2 channels with weights"):
        compute(FORWARD.format("2D"), source, weights, descriptor(groups=2))
