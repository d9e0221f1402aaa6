"""Resizing of images by nearest or bilinear sampling, and its gradients.

From MPSGraphResizeOps.h. Coordinates are float32, as on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported
from scanner.sim.graph.ops.layouts import image_axes
from scanner.sim.graph.ops.pullbacks import pullback

__all__ = ["METHODS", "round_coordinates"]

METHODS = Methods()

_NEAREST, _BILINEAR = 0, 1
"""MPSGraphResizeMode."""
_PREFER_CEIL = 0


def _to_odd(value: Tensor) -> Tensor:
    floor = value.floor()
    tie = value - floor == 0.5
    return torch.where(tie, floor + (floor % 2 == 0), (value + 0.5).floor())


_ROUNDINGS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda value: (value + 0.5).floor(),
    lambda value: (value - 0.5).ceil(),
    torch.ceil,
    torch.floor,
    torch.round,
    _to_odd,
)
"""By MPSGraphResizeNearestRoundingMode: prefer ceil, prefer floor, ceil, floor, even, odd."""


def round_coordinates(value: Tensor, mode: int) -> Tensor:
    """Nearest integers by MPSGraphResizeNearestRoundingMode."""
    if not 0 <= mode < len(_ROUNDINGS):
        raise Unsupported(f"nearestRoundingMode {mode}")
    return _ROUNDINGS[mode](value)


@dataclass(frozen=True)
class _Sampling:
    """How a resized image takes its values from an image."""

    axes: tuple[int, int]
    rounding: int | None
    """Rounding of nearest sampling; None for bilinear."""
    center: bool = False
    corners: bool = False
    scale_offset: tuple[float, ...] | None = None
    """[scaleY, scaleX, offsetY, offsetX]: result coordinate = image coordinate · scale + offset."""

    def resize(self, image: Tensor, sizes: Sequence[int]) -> Tensor:
        """The image with new height and width."""
        for side, axis in enumerate(self.axes):
            image = self._along(image, axis, self._coordinates(image.shape[axis], sizes, side))
        return image

    def _coordinates(self, length: int, sizes: Sequence[int], side: int) -> Tensor:
        """Where in the image each element of the result lies."""
        wanted = sizes[side]
        places = torch.arange(wanted, dtype=torch.float32)
        if self.scale_offset is not None:
            scale, offset = self.scale_offset[side], self.scale_offset[side + 2]
            return (places - offset) / scale
        if self.corners:
            return places * _ratio(length - 1, wanted - 1)
        ratio = _ratio(length, wanted)
        return (places + 0.5) * ratio - 0.5 if self.center else places * ratio

    def _along(self, image: Tensor, axis: int, at: Tensor) -> Tensor:
        last = image.shape[axis] - 1
        if self.rounding is not None:
            nearest = round_coordinates(at, self.rounding).clamp(0, last)
            return image.index_select(axis, nearest.long().to(image.device))
        at = at.clamp(0, last)
        low = at.floor()
        low_values, high_values = (
            image.index_select(axis, place.clamp(max=last).long().to(image.device))
            for place in (low, low + 1)
        )
        shape = [-1 if dimension == axis else 1 for dimension in range(image.dim())]
        part = (at - low).reshape(shape).to(image.device)
        return (low_values * (1 - part) + high_values * part).to(image.dtype)


def _ratio(length: int, wanted: int) -> Tensor:
    return torch.tensor(float(length) / wanted if wanted > 0 else 0.0, dtype=torch.float32)


def _sampling(call: Arguments) -> _Sampling:
    axes = image_axes(call.integer("layout"))
    if call.get("scaleOffsetTensor") is not None:
        given = tuple(float(item) for item in call.tensor("scaleOffsetTensor").flatten().tolist())
        return _Sampling(axes, _rounding(call), scale_offset=given)
    return _Sampling(axes, _rounding(call), call.flag("centerResult"), call.flag("alignCorners"))


def _rounding(call: Arguments) -> int | None:
    if call.selector.startswith("resizeBilinear"):
        return None
    if call.selector.startswith("resizeNearest"):
        return call.integer("nearestRoundingMode")
    mode = call.integer("mode")
    if mode not in (_NEAREST, _BILINEAR):
        raise Unsupported(f"resize mode {mode}")
    return _PREFER_CEIL if mode == _NEAREST else None


@METHODS.define(
    "resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:layout:name:",
    "resizeNearestWithTensor:sizeTensor:scaleOffsetTensor:nearestRoundingMode:layout:name:",
    "resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout:name:",
    "resizeBilinearWithTensor:sizeTensor:scaleOffsetTensor:layout:name:",
    "resizeTensor:sizeTensor:mode:centerResult:alignCorners:layout:name:",
)
def resize(call: Arguments) -> Tensor:
    """Samples an image at another size."""
    image = call.tensor(call.selector.split(":")[0])
    return _sampling(call).resize(image, call.integers("sizeTensor"))


@METHODS.define(
    "resizeNearestWithGradientTensor:input:nearestRoundingMode:centerResult:alignCorners:layout:"
    "name:",
    "resizeNearestWithGradientTensor:input:scaleOffsetTensor:nearestRoundingMode:layout:name:",
    "resizeBilinearWithGradientTensor:input:centerResult:alignCorners:layout:name:",
    "resizeBilinearWithGradientTensor:input:scaleOffsetTensor:layout:name:",
    "resizeWithGradientTensor:input:mode:centerResult:alignCorners:layout:name:",
)
def resize_gradient(call: Arguments) -> Tensor:
    """Adds the gradient of each sample to where it was taken from."""
    incoming, sampling = call.tensor(call.selector.split(":")[0]), _sampling(call)
    sizes = [incoming.shape[axis] for axis in sampling.axes]
    return pullback(lambda image: sampling.resize(image, sizes), call.tensor("input"), incoming)
