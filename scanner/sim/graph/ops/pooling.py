"""Maximum and average pooling in two dimensions, with indices and gradients.

From MPSGraphPoolingOps.h. Which of several equal maxima gets the gradient is not documented; it
is the first here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from scanner.sim.graph.methods import Arguments, Methods, Properties, Unsupported, dtype_named
from scanner.sim.graph.ops.layouts import (
    Padding,
    from_channels_first,
    pad,
    padding,
    to_channels_first,
    window_axes,
)
from scanner.sim.graph.ops.pullbacks import pullback

METHODS = Methods()

_FLATTENED_2D = 2
"""MPSGraphPoolingReturnIndicesGlobalFlatten2D: an index counts along height and width."""


@dataclass(frozen=True)
class _Windows:
    """Windows on an input in NCHW; lists are height, width."""

    size: list[int]
    stride: list[int]
    dilation: list[int]
    padding: Padding
    """As described, without what rounding up adds."""
    surplus: Padding
    """What rounding up adds after the image."""

    def maxima(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Maxima and where they are: row · width + column of the unpadded image."""
        wide = source if source.dtype.is_floating_point else source.long()
        padded = pad(pad(wide, self.padding, _lowest(wide)), self.surplus, _lowest(wide))
        values, places = functional.max_pool2d(
            padded, self.size, self.stride, dilation=self.dilation, return_indices=True
        )
        return values.to(source.dtype), self._unpadded(places, padded.shape[-1], source.shape[-2:])

    def _unpadded(self, places: Tensor, width: int, image: Sequence[int]) -> Tensor:
        rows = (places // width - self.padding[0][0]).clamp(0, image[0] - 1)
        columns = (places % width - self.padding[1][0]).clamp(0, image[1] - 1)
        return rows * image[1] + columns

    def means(self, source: Tensor, count_padding: bool) -> Tensor:
        """Averages over the image's elements, or over the padding's too."""
        if max(self.dilation) > 1:
            raise Unsupported("dilated average pooling")
        total = self._sums(pad(source, self.padding))
        ones = source.new_ones((1, *source.shape[-2:]))
        return total / self._sums(pad(ones, self.padding, float(count_padding)))

    def _sums(self, padded: Tensor) -> Tensor:
        whole = pad(padded, self.surplus)
        return functional.avg_pool2d(whole, self.size, self.stride, divisor_override=1)


def _lowest(tensor: Tensor) -> float:
    floating = tensor.dtype.is_floating_point
    return -torch.inf if floating else torch.iinfo(tensor.dtype).min


def _windows(properties: Properties, image: Sequence[int]) -> _Windows:
    size = [int(properties[f"kernel{side}"]) for side in ("Height", "Width")]
    stride = window_axes(properties, "strideIn", "YX")
    dilation = window_axes(properties, "dilationRateIn", "YX")
    extents = [(side - 1) * step + 1 for side, step in zip(size, dilation, strict=True)]
    amounts = padding(properties, "YX", image, extents, stride)
    surplus = [0, 0]
    for side, pair in enumerate(amounts):
        padded = image[side] + sum(pair)
        if properties.get("ceilMode", False):
            surplus[side] = (extents[side] - padded) % stride[side]
        last = (padded + surplus[side] - extents[side]) // stride[side] * stride[side]
        if pair[0] >= extents[side] or last >= pair[0] + image[side]:
            raise Unsupported("a pooling window that lies wholly in the padding")
    return _Windows(size, stride, dilation, amounts, ((0, surplus[0]), (0, surplus[1])))


def _pooled(call: Arguments, part: str) -> tuple[Tensor, _Windows, Properties]:
    properties = call.descriptor()
    source = to_channels_first(call.tensor(part), properties["dataLayout"])
    return source, _windows(properties, source.shape[-2:]), properties


@METHODS.define("maxPooling2DWithSourceTensor:descriptor:name:")
def maximum(call: Arguments) -> Tensor:
    """Maxima."""
    source, windows, properties = _pooled(call, "maxPooling2DWithSourceTensor")
    return from_channels_first(windows.maxima(source)[0], properties["dataLayout"])


@METHODS.define("maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:")
def maximum_with_indices(call: Arguments) -> tuple[Tensor, Tensor]:
    """Maxima and their places."""
    source, windows, properties = _pooled(call, "maxPooling2DReturnIndicesWithSourceTensor")
    mode = properties.get("returnIndicesMode", 0)
    if mode != _FLATTENED_2D:
        raise Unsupported(f"returnIndicesMode {mode}")
    values, places = windows.maxima(source)
    places = places.to(dtype_named(properties.get("returnIndicesDataType", "int32")))
    layout = properties["dataLayout"]
    return from_channels_first(values, layout), from_channels_first(places, layout)


@METHODS.define("maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:")
def maximum_gradient(call: Arguments) -> Tensor:
    """The gradient goes to each window's maximum."""
    source, windows, properties = _pooled(call, "sourceTensor")
    layout = properties["dataLayout"]
    incoming = to_channels_first(call.tensor("maxPooling2DGradientWithGradientTensor"), layout)
    found = pullback(lambda image: windows.maxima(image)[0], source, incoming)
    return from_channels_first(found, layout)


@METHODS.define("avgPooling2DWithSourceTensor:descriptor:name:")
def average(call: Arguments) -> Tensor:
    """Averages."""
    source, windows, properties = _pooled(call, "avgPooling2DWithSourceTensor")
    counted = bool(properties.get("includeZeroPadToAverage", False))
    return from_channels_first(windows.means(source, counted), properties["dataLayout"])


@METHODS.define("avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:")
def average_gradient(call: Arguments) -> Tensor:
    """The gradient is spread over each window."""
    source, windows, properties = _pooled(call, "sourceTensor")
    layout = properties["dataLayout"]
    counted = bool(properties.get("includeZeroPadToAverage", False))
    incoming = to_channels_first(call.tensor("avgPooling2DGradientWithGradientTensor"), layout)
    found = pullback(lambda image: windows.means(image, counted), source, incoming)
    return from_channels_first(found, layout)
