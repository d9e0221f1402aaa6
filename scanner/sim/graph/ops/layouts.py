"""Named layouts of images and weights, and how much a window's input is padded.

Values of MPSGraphTensorNamedDataLayout and MPSGraphPaddingStyle.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from scanner.sim.graph.methods import Properties, Unsupported

__all__ = [
    "Padding",
    "from_channels_first",
    "image_axes",
    "pad",
    "padding",
    "to_channels_first",
    "trim",
    "window_axes",
]

_NAMES = {
    0: "NCHW",
    1: "NHWC",
    2: "OIHW",
    3: "HWIO",
    4: "CHW",
    5: "HWC",
    6: "HW",
    7: "NCDHW",
    8: "NDHWC",
    9: "OIDHW",
    10: "DHWIO",
}
_EXPLICIT, _VALID, _SAME, _SAME_LOWER = 0, 1, 2, 4
_SIDES = {"X": ("Left", "Right"), "Y": ("Top", "Bottom"), "Z": ("Front", "Back")}

Padding = tuple[tuple[int, int], ...]
"""Elements before and after each spatial axis; a negative number takes elements away."""


def _name(layout: int) -> str:
    if layout not in _NAMES:
        raise Unsupported(f"tensor layout {layout}")
    return _NAMES[layout]


def _order(layout: int, rank: int) -> list[int]:
    """Axes of a tensor in the order NOCIDHW. Host code also pools single images as NCHW."""
    name = _name(layout)
    if len(name) == rank + 1:
        name = name.removeprefix("N")
    if len(name) != rank:
        raise Unsupported(f"a tensor of rank {rank} in layout {name}")
    return [name.index(axis) for axis in "NOCIDHW" if axis in name]


def to_channels_first(tensor: Tensor, layout: int) -> Tensor:
    """A view as NC…HW, or OI…HW for weights; Unsupported when the rank is not the layout's."""
    return tensor.permute(_order(layout, tensor.dim()))


def from_channels_first(tensor: Tensor, layout: int) -> Tensor:
    """Undoes `to_channels_first`."""
    order = _order(layout, tensor.dim())
    return tensor.permute([order.index(axis) for axis in range(len(order))])


def image_axes(layout: int) -> tuple[int, int]:
    """Where height and width are."""
    name = _name(layout)
    if "O" in name or "D" in name:
        raise Unsupported(f"layout {name} for an image")
    return name.index("H"), name.index("W")


def window_axes(properties: Properties, stem: str, axes: str) -> list[int]:
    """`strideInY`, `strideInX` and the like, in the order of the axes."""
    return [int(properties[f"{stem}{axis}"]) for axis in axes]


def _explicit(properties: Properties, axes: str) -> Padding:
    found = []
    for axis in axes:
        before, after = (int(properties[f"padding{side}"]) for side in _SIDES[axis])
        found.append((before, after))
    return tuple(found)


def padding(
    properties: Properties,
    axes: str,
    sizes: Sequence[int],
    extents: Sequence[int],
    strides: Sequence[int],
    explicit: Padding | None = None,
) -> Padding:
    """Padding of an input of spatial `sizes`, under windows of `extents` with dilation counted.

    `explicit` replaces the sides named by `axes`. SAME gives ceil(size / stride) windows, with
    the odd element after (TensorFlow) or before (ONNX_SAME_LOWER).
    """
    style = int(properties.get("paddingStyle", _EXPLICIT))
    if style == _EXPLICIT:
        return explicit if explicit is not None else _explicit(properties, axes)
    if style == _VALID:
        return ((0, 0),) * len(sizes)
    if style not in (_SAME, _SAME_LOWER):
        raise Unsupported(f"padding style {style}")
    return tuple(_same(*size, style) for size in zip(sizes, extents, strides, strict=True))


def _same(size: int, extent: int, stride: int, style: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + extent - size, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if style == _SAME else (large, small)


def pad(tensor: Tensor, amounts: Padding, value: float = 0.0) -> Tensor:
    """Adds elements around the last axes."""
    flat = [side for pair in reversed(amounts) for side in pair]
    return torch.nn.functional.pad(tensor, flat, value=value) if any(flat) else tensor


def trim(tensor: Tensor, amounts: Padding) -> Tensor:
    """Takes padding away again."""
    return pad(tensor, tuple((-before, -after) for before, after in amounts))
