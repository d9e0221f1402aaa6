"""Coordinates that `grid_sample` reads at: away from where its gradient jumps.

The gradient for a coordinate is constant or smooth within a cell of the image and jumps at its
borders. In half precision a coordinate near a border falls on one side here and on the other there,
and both are right.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.probe.draws import Operand, uniform

__all__ = ["grid"]

_CANDIDATES = 16
_BEYOND = 1.0
"""Pixels outside of the image that are sampled too."""
_JITTER = 0.1
_ENOUGH = 0.125
"""Pixels to the next border that are as good as more."""


def grid(operand: Operand) -> Tensor:
    """Near the middle of half cells: no mode of interpolation or padding has a border there.

    Linear and cubic cells border on pixels, nearest ones and paddings half-way between. Of several
    candidates, rounded to the dtype, the first that is far enough from both is taken for each
    coordinate, else the farthest: coarse dtypes have no such number for every pixel.
    """
    image = operand.spec("input") or operand.spec("self")
    sizes = image.shape[2:] if image is not None else ()
    if not operand.shape or operand.shape[-1] != len(sizes) or 0 in sizes:
        return uniform(-1.0, 1.0)(operand)
    corners = bool(operand.attribute("align_corners", False))
    # The last dimension is x, y, z; the image's are z, y, x.
    lines = [_line(operand, size, corners) for size in reversed(sizes)]
    return torch.stack(lines, dim=-1)


def _line(operand: Operand, size: int, corners: bool) -> Tensor:
    """Coordinates along one dimension of the image."""
    shape = (_CANDIDATES, *operand.shape[:-1])
    unit, jitter = torch.rand((2, *shape), generator=operand.generator, dtype=torch.float64)
    halves = ((unit * (size - 1 + 2 * _BEYOND) - _BEYOND) * 2).floor() / 2
    pixels = halves + 0.25 + (jitter - 0.5) * 2 * _JITTER
    candidates = operand.cast(_coordinate(pixels, size, corners))
    score = _margin(candidates, size, corners).clamp(max=_ENOUGH)
    order = torch.arange(_CANDIDATES).reshape(-1, *(1 for _ in shape[1:]))
    best = (score - order * 1e-9).argmax(0, keepdim=True)
    return candidates.gather(0, best).squeeze(0)


def _coordinate(pixels: Tensor, size: int, corners: bool) -> Tensor:
    """The inverse of `_halves`."""
    if corners:
        return pixels * 2 / max(size - 1, 1) - 1
    return (pixels * 2 + 1) / size - 1


def _margin(coordinates: Tensor, size: int, corners: bool) -> Tensor:
    """Pixels to the next border of a half cell; none where rounding decides on the cell.

    Devices compute positions in the dtype of the coordinates, or in a wider one.
    """
    narrow = _halves(coordinates, size, corners).double()
    wide = _halves(coordinates.double(), size, corners)
    margin = torch.minimum((narrow - narrow.round()).abs(), (wide - wide.round()).abs()) / 2
    return torch.where(narrow.floor() == wide.floor(), margin, 0.0)


def _halves(coordinates: Tensor, size: int, corners: bool) -> Tensor:
    """The position in half pixels, computed as kernels do."""
    if corners:
        return (coordinates + 1) / 2 * (size - 1) * 2
    return (coordinates + 1) * size - 1
