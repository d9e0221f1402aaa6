"""Methods that move elements and change none, apart from slices and padding."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported
from scanner.sim.graph.ops.operands import axes, axis, same_type

METHODS = Methods()


@METHODS.define("reshapeTensor:withShape:name:", "reshapeTensor:withShapeTensor:name:")
def _reshape(call: Arguments) -> Tensor:
    part = "withShape" if "withShape" in call else "withShapeTensor"
    return call.tensor("reshapeTensor").reshape(call.integers(part))


@METHODS.define("transposeTensor:dimension:withDimension:name:")
def _transpose(call: Arguments) -> Tensor:
    tensor = call.tensor("transposeTensor")
    rank = tensor.dim()
    return tensor.transpose(axis(call, "dimension", rank), axis(call, "withDimension", rank))


@METHODS.define("transposeTensor:permutation:name:")
def _permute(call: Arguments) -> Tensor:
    return call.tensor("transposeTensor").permute(call.integers("permutation"))


@METHODS.define("broadcastTensor:toShape:name:", "broadcastTensor:toShapeTensor:name:")
def _broadcast(call: Arguments) -> Tensor:
    part = "toShape" if "toShape" in call else "toShapeTensor"
    return call.tensor("broadcastTensor").broadcast_to(call.integers(part))


@METHODS.define("tileTensor:withMultiplier:name:")
def _tile(call: Arguments) -> Tensor:
    tensor, times = call.tensor("tileTensor"), call.integers("withMultiplier")
    if len(times) != tensor.dim():
        raise Unsupported(f"{len(times)} multipliers for a tensor of rank {tensor.dim()}")
    return tensor.repeat(times)


@METHODS.define("expandDimsOfTensor:axis:name:", "expandDimsOfTensor:axes:name:")
def _expand(call: Arguments) -> Tensor:
    """Axes count in the result."""
    tensor = call.tensor("expandDimsOfTensor")
    part = "axes" if "axes" in call else "axis"
    rank = tensor.dim() + len(call.integers(part))
    for place in sorted(axes(call, part, rank)):
        tensor = tensor.unsqueeze(place)
    return tensor


@METHODS.define("squeezeTensor:axis:name:", "squeezeTensor:axes:name:", "squeezeTensor:name:")
def _squeeze(call: Arguments) -> Tensor:
    tensor = call.tensor("squeezeTensor")
    part = "axes" if "axes" in call else "axis"
    if part not in call:
        return tensor.squeeze()
    places = axes(call, part, tensor.dim())
    if any(tensor.shape[place] != 1 for place in places):
        raise Unsupported(f"axes {list(places)} of shape {list(tensor.shape)}")
    return tensor.squeeze(places)


@METHODS.define("flatten2DTensor:axis:name:")
def _flatten(call: Arguments) -> Tensor:
    """Rows are what lies before the axis; the axis may be one past the last."""
    tensor, place = call.tensor("flatten2DTensor"), call.integer("axis")
    place = place + tensor.dim() if place < 0 else place
    return tensor.reshape(math.prod(tensor.shape[:place]), math.prod(tensor.shape[place:]))


@METHODS.define("reverseTensor:axes:name:", "reverseTensor:name:")
def _reverse(call: Arguments) -> Tensor:
    tensor = call.tensor("reverseTensor")
    return tensor.flip(axes(call, "axes", tensor.dim()))


@METHODS.define("concatTensors:dimension:name:", "concatTensors:dimension:interleave:name:")
def _concat(call: Arguments) -> Tensor:
    tensors = call.tensors("concatTensors")
    same_type(*tensors)
    place = axis(call, "dimension", tensors[0].dim())
    if call.flag("interleave"):
        return torch.stack(tensors, place + 1).flatten(place, place + 1)
    return torch.cat(tensors, place)


@METHODS.define("concatTensor:withTensor:dimension:name:")
def _concat_pair(call: Arguments) -> Tensor:
    tensors = call.operands()
    same_type(*tensors)
    return torch.cat(tensors, axis(call, "dimension", tensors[0].dim()))


@METHODS.define("splitTensor:numSplits:axis:name:")
def _split(call: Arguments) -> tuple[Tensor, ...]:
    tensor, count = call.tensor("splitTensor"), call.integer("numSplits")
    place = axis(call, "axis", tensor.dim())
    if count < 1 or tensor.shape[place] % count:
        raise Unsupported(f"{count} parts of an axis of {tensor.shape[place]}")
    return tensor.tensor_split(count, place)


@METHODS.define("shapeOfTensor:name:")
def _shape(call: Arguments) -> Tensor:
    return torch.tensor(call.tensor("shapeOfTensor").shape, dtype=torch.int32)


@METHODS.define(
    "coordinateAlongAxis:withShape:name:",
    "coordinateAlongAxis:withShapeTensor:name:",
    "coordinateAlongAxisTensor:withShapeTensor:name:",
)
def _coordinate(call: Arguments) -> Tensor:
    along = "coordinateAlongAxis" if "coordinateAlongAxis" in call else "coordinateAlongAxisTensor"
    shape = call.integers("withShape" if "withShape" in call else "withShapeTensor")
    place = axis(call, along, len(shape))
    steps = torch.arange(shape[place], dtype=torch.int32)
    return steps.reshape([-1 if at == place else 1 for at in range(len(shape))]).expand(shape)


_BLOCKS = "widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"


@METHODS.define(f"depthToSpace2DTensor:{_BLOCKS}")
def _depth_to_space(call: Arguments) -> Tensor:
    """Depth is split into (depth, rows, columns) in pixel-shuffle order, else depth comes last."""
    tensor, block = call.tensor("depthToSpace2DTensor"), call.integer("blockSize")
    order = _image_axes(call, tensor)
    moved = tensor.movedim(order, (-3, -2, -1))
    *rest, depth, height, width = moved.shape
    kept = depth // block**2
    if call.flag("usePixelShuffleOrder"):
        parts = moved.reshape(*rest, kept, block, block, height, width)
    else:
        parts = moved.reshape(*rest, block, block, kept, height, width).movedim(-3, -5)
    mixed = parts.movedim((-4, -3), (-3, -1))
    return mixed.reshape(*rest, kept, height * block, width * block).movedim((-3, -2, -1), order)


@METHODS.define(f"spaceToDepth2DTensor:{_BLOCKS}")
def _space_to_depth(call: Arguments) -> Tensor:
    tensor, block = call.tensor("spaceToDepth2DTensor"), call.integer("blockSize")
    order = _image_axes(call, tensor)
    moved = tensor.movedim(order, (-3, -2, -1))
    *rest, depth, height, width = moved.shape
    parts = moved.reshape(*rest, depth, height // block, block, width // block, block)
    apart = parts.movedim((-3, -1), (-4, -3))
    if not call.flag("usePixelShuffleOrder"):
        apart = apart.movedim(-5, -3)
    shape = (*rest, depth * block**2, height // block, width // block)
    return apart.reshape(shape).movedim((-3, -2, -1), order)


def _image_axes(call: Arguments, tensor: Tensor) -> tuple[int, ...]:
    parts = ("depthAxis", "heightAxis", "widthAxis")
    return tuple(axis(call, part, tensor.dim()) for part in parts)
