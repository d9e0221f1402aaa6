"""Convolutions and their gradients with respect to input and weights.

Weights are [outputs, inputs / groups, …]; a window is not flipped. From MPSGraphConvolutionOps.h
and MPSGraphDepthwiseConvolutionOps.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Properties, Unsupported
from scanner.sim.graph.ops.layouts import (
    Padding,
    from_channels_first,
    pad,
    padding,
    to_channels_first,
    trim,
    window_axes,
)

METHODS = Methods()

_AXES = {"2D": "YX", "3D": "ZYX"}


@dataclass(frozen=True)
class _Geometry:
    """How windows lie on an input in NC…HW; lists follow the spatial axes."""

    stride: Sequence[int]
    dilation: Sequence[int]
    padding: Padding
    groups: int

    def convolve(self, source: Tensor, weights: Tensor) -> Tensor:
        """The convolution."""
        count = len(self.stride)
        padded = pad(source, self.padding)
        return torch.convolution(
            padded,
            weights,
            None,
            self.stride,
            [0] * count,
            self.dilation,
            False,
            [0] * count,
            self.groups,
        )

    def source_gradient(self, incoming: Tensor, shape: Sequence[int], weights: Tensor) -> Tensor:
        """Gradient of an input of `shape`."""
        padded = pad(incoming.new_empty(shape), self.padding)
        return trim(self._backward(incoming, padded, weights, 0), self.padding)

    def weights_gradient(self, incoming: Tensor, source: Tensor, shape: Sequence[int]) -> Tensor:
        """Gradient of weights of `shape`."""
        weights = incoming.new_empty(shape)
        return self._backward(incoming, pad(source, self.padding), weights, 1)

    def _backward(self, incoming: Tensor, padded: Tensor, weights: Tensor, which: int) -> Tensor:
        spatial = [0] * len(self.stride)
        gradients: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
            incoming,
            padded,
            weights,
            None,
            self.stride,
            spatial,
            self.dilation,
            False,
            spatial,
            self.groups,
            [which == 0, which == 1, False],
        )
        return gradients[which]


def _extents(weights: Sequence[int], dilation: Sequence[int]) -> list[int]:
    return [(size - 1) * step + 1 for size, step in zip(weights, dilation, strict=True)]


def _geometry(
    properties: Properties, axes: str, source: Sequence[int], weights: Sequence[int]
) -> _Geometry:
    """Geometry for an input and weights of these shapes, channels first."""
    stride = window_axes(properties, "strideIn", axes)
    dilation = window_axes(properties, "dilationRateIn", axes)
    extents = _extents(weights[2:], dilation)
    amounts = padding(properties, axes, source[2:], extents, stride)
    groups = int(properties.get("groups", 1))
    if source[1] != weights[1] * groups:
        raise Unsupported(f"{source[1]} channels with weights {tuple(weights)}, groups {groups}")
    return _Geometry(stride, dilation, amounts, groups)


def _axes(call: Arguments) -> str:
    return _AXES[call.selector.removeprefix("convolution")[:2]]


def _ordered(shape: Sequence[int], layout: int) -> list[int]:
    """A shape with channels first."""
    return list(to_channels_first(torch.empty(shape, device="meta"), layout).shape)


@METHODS.define(
    "convolution2DWithSourceTensor:weightsTensor:descriptor:name:",
    "convolution3DWithSourceTensor:weightsTensor:descriptor:name:",
)
def convolution(call: Arguments) -> Tensor:
    """2D and 3D."""
    properties = call.descriptor()
    layout = properties["dataLayout"]
    source = to_channels_first(call.tensor(call.selector.split(":")[0]), layout)
    weights = to_channels_first(call.tensor("weightsTensor"), properties["weightsLayout"])
    geometry = _geometry(properties, _axes(call), source.shape, weights.shape)
    return from_channels_first(geometry.convolve(source, weights), layout)


@METHODS.define(
    "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
    "forwardConvolutionDescriptor:name:",
    "convolution3DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
    "forwardConvolutionDescriptor:name:",
)
def source_gradient(call: Arguments) -> Tensor:
    """Gradient of the input; host code also computes transposed convolutions with it."""
    properties = call.descriptor("forwardConvolutionDescriptor")
    layout = properties["dataLayout"]
    incoming = to_channels_first(call.tensor(call.selector.split(":")[0]), layout)
    weights = to_channels_first(call.tensor("weightsTensor"), properties["weightsLayout"])
    shape = _ordered(call.integers("outputShape"), layout)
    geometry = _geometry(properties, _axes(call), shape, weights.shape)
    return from_channels_first(geometry.source_gradient(incoming, shape, weights), layout)


@METHODS.define(
    "convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
    "forwardConvolutionDescriptor:name:",
    "convolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
    "forwardConvolutionDescriptor:name:",
)
def weights_gradient(call: Arguments) -> Tensor:
    """Gradient of the weights."""
    properties = call.descriptor("forwardConvolutionDescriptor")
    layout, weights_layout = properties["dataLayout"], properties["weightsLayout"]
    incoming = to_channels_first(call.tensor(call.selector.split(":")[0]), layout)
    source = to_channels_first(call.tensor("sourceTensor"), layout)
    shape = _ordered(call.integers("outputShape"), weights_layout)
    geometry = _geometry(properties, _axes(call), source.shape, shape)
    return from_channels_first(geometry.weights_gradient(incoming, source, shape), weights_layout)


class _Depthwise:
    """Brings the last four axes, one of them the channels, to [batch, channels, D, H, W].

    Host code hands over [N, C, H, W] with the channels at −3, so that N is the depth.
    """

    def __init__(self, properties: Properties) -> None:
        self._properties = properties
        self._channels = int(properties.get("channelDimensionIndex", -4))
        if not -4 <= self._channels <= -1:
            raise Unsupported(f"channelDimensionIndex {self._channels}")

    def images(self, tensor: Tensor) -> Tensor:
        """Channels first, with one batch axis."""
        moved = tensor.movedim(self._channels, -4)
        return moved.reshape(-1, *moved.shape[-4:])

    def shape(self, shape: Sequence[int]) -> list[int]:
        """The same for a shape."""
        return list(self.images(torch.empty(shape, device="meta")).shape)

    def back(self, images: Tensor, leading: Sequence[int]) -> Tensor:
        """Undoes `images`."""
        return images.reshape(*leading, *images.shape[-4:]).movedim(-4, self._channels)

    def weights(self, tensor: Tensor) -> Tensor:
        """[multiplied channels, 1, D, H, W]."""
        return self.images(tensor).movedim(1, 0)

    def geometry(self, source: Sequence[int], weights: Sequence[int]) -> _Geometry:
        """Geometry for shapes in this form; a channel's outputs follow each other."""
        stride, dilation = self._properties["strides"], self._properties["dilationRates"]
        flat = tuple(self._properties["paddingValues"])
        explicit = tuple(zip(flat[::2], flat[1::2], strict=True))
        extents = _extents(weights[2:], dilation)
        amounts = padding(self._properties, "ZYX", source[2:], extents, stride, explicit)
        if weights[0] % source[1]:
            raise Unsupported(f"depthwise weights {tuple(weights)} for {source[1]} channels")
        return _Geometry(stride, dilation, amounts, source[1])


@METHODS.define("depthwiseConvolution3DWithSourceTensor:weightsTensor:descriptor:name:")
def depthwise(call: Arguments) -> Tensor:
    """Every channel by itself."""
    form = _Depthwise(call.descriptor())
    given = call.tensor("depthwiseConvolution3DWithSourceTensor")
    source, weights = form.images(given), form.weights(call.tensor("weightsTensor"))
    result = form.geometry(source.shape, weights.shape).convolve(source, weights)
    return form.back(result, given.shape[:-4])


@METHODS.define(
    "depthwiseConvolution3DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
    "descriptor:name:"
)
def depthwise_source_gradient(call: Arguments) -> Tensor:
    """Gradient of the input."""
    form = _Depthwise(call.descriptor())
    given = call.integers("outputShape")
    incoming = form.images(call.tensor(call.selector.split(":")[0]))
    weights, shape = form.weights(call.tensor("weightsTensor")), form.shape(given)
    geometry = form.geometry(shape, weights.shape)
    return form.back(geometry.source_gradient(incoming, shape, weights), given[:-4])


@METHODS.define(
    "depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
    "descriptor:name:"
)
def depthwise_weights_gradient(call: Arguments) -> Tensor:
    """Gradient of the weights."""
    form = _Depthwise(call.descriptor())
    given = call.integers("outputShape")
    incoming = form.images(call.tensor(call.selector.split(":")[0]))
    source = form.images(call.tensor("sourceTensor"))
    one, channels, *extents = form.shape(given)
    shape = [channels, one, *extents]
    geometry = form.geometry(source.shape, shape)
    gradient = geometry.weights_gradient(incoming, source, shape)
    return form.back(gradient.movedim(0, 1), given[:-4])
