"""Sampling of an image at the coordinates of a grid. From MPSGraphSampleGridOps.h."""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported
from scanner.sim.graph.ops.layouts import from_channels_first, to_channels_first
from scanner.sim.graph.ops.resize import round_coordinates

METHODS = Methods()

_CONSTANT, _REFLECT, _SYMMETRIC, _CLAMP, _ZERO = range(5)
"""MPSGraphPaddingMode."""
_NEAREST, _BILINEAR = 0, 1
_PREFER_CEIL = 0


def _pixels(coordinates: Tensor, length: int, corners: bool) -> Tensor:
    """From [-1, 1] to pixels; the ends are centres of the outer pixels, or their outer edges."""
    if corners:
        return (coordinates + 1) / 2 * (length - 1)
    return ((coordinates + 1) * length - 1) / 2


def _folded(place: Tensor, length: int, mode: int) -> Tensor:
    """Which pixel stands for one outside of the image."""
    if mode == _REFLECT:
        period = max(2 * (length - 1), 1)
        wrapped = place % period
        return torch.minimum(wrapped, period - wrapped)
    if mode == _SYMMETRIC:
        wrapped = place % (2 * length)
        return torch.minimum(wrapped, 2 * length - 1 - wrapped)
    return place.clamp(0, length - 1)


class _Image:
    """An image in NCHW with what lies around it."""

    def __init__(self, image: Tensor, mode: int, constant: float) -> None:
        if mode not in (_CONSTANT, _REFLECT, _SYMMETRIC, _CLAMP, _ZERO):
            raise Unsupported(f"paddingMode {mode} of sampleGrid")
        self.image = image
        self._mode = mode
        self._constant = constant if mode == _CONSTANT else 0.0

    def at(self, row: Tensor, column: Tensor) -> Tensor:
        """Pixels [N, C, H, W] at integer places [N, H, W]."""
        height, width = self.image.shape[-2:]
        batch = torch.arange(self.image.shape[0], device=row.device)[:, None, None]
        rows, columns = _folded(row, height, self._mode), _folded(column, width, self._mode)
        found = self.image.movedim(1, -1)[batch, rows, columns].movedim(-1, 1)
        if self._mode not in (_CONSTANT, _ZERO):
            return found
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        return torch.where(inside[:, None], found, self._constant)


def _bilinear(image: _Image, row: Tensor, column: Tensor) -> Tensor:
    top, left = row.floor(), column.floor()
    found = torch.zeros((), dtype=torch.float32, device=row.device)
    for down in (0, 1):
        for right in (0, 1):
            weight = (1 - (row - top - down).abs()) * (1 - (column - left - right).abs())
            pixels = image.at((top + down).long(), (left + right).long())
            found = found + pixels * weight[:, None]
    return found


def _sampled(call: Arguments, rounding: int | None) -> Tensor:
    if call.flag("relativeCoordinates"):
        raise Unsupported("relative coordinates of sampleGrid")
    layout = call.integer("layout")
    image = to_channels_first(call.tensor("sampleGridWithSourceTensor"), layout)
    column, row = call.tensor("coordinateTensor").float().unbind(-1)
    if not row.is_meta and not (row.isfinite() & column.isfinite()).all():
        raise Unsupported("sampleGrid at a coordinate that is not finite")
    if call.flag("normalizeCoordinates"):
        corners = call.flag("alignCorners")
        row = _pixels(row, image.shape[-2], corners)
        column = _pixels(column, image.shape[-1], corners)
    padded = _Image(image, call.integer("paddingMode"), call.number("constantValue"))
    if rounding is None:
        found = _bilinear(padded, row, column)
    else:
        places = (round_coordinates(place, rounding).long() for place in (row, column))
        found = padded.at(*places)
    return from_channels_first(found.to(image.dtype), layout)


@METHODS.define(
    "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:"
    "alignCorners:paddingMode:samplingMode:constantValue:name:"
)
def sample_grid(call: Arguments) -> Tensor:
    """Bilinear, or nearest with ties towards +∞."""
    mode = call.integer("samplingMode")
    if mode not in (_NEAREST, _BILINEAR):
        raise Unsupported(f"samplingMode {mode}")
    return _sampled(call, _PREFER_CEIL if mode == _NEAREST else None)


@METHODS.define(
    "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:"
    "alignCorners:paddingMode:nearestRoundingMode:constantValue:name:"
)
def sample_grid_nearest(call: Arguments) -> Tensor:
    """Nearest with a rounding mode."""
    return _sampled(call, call.integer("nearestRoundingMode"))
