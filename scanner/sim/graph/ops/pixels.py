"""Moving blocks of pixels into channels and back. From MPSGraphDepthToSpaceOps.h."""

from __future__ import annotations

from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported

METHODS = Methods()


def _axes(call: Arguments, tensor: Tensor) -> list[int]:
    """Depth, height, width."""
    found = [call.integer(f"{name}Axis") % tensor.dim() for name in ("depth", "height", "width")]
    if len(set(found)) < len(found):
        raise Unsupported("an axis given twice")
    return found


@METHODS.define(
    "depthToSpace2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"
)
def depth_to_space(call: Arguments) -> Tensor:
    """A block's pixels come from different channels.

    In pixel-shuffle order the channels of the result are the outer part of the depth, otherwise
    the inner part.
    """
    tensor, block = call.tensor("depthToSpace2DTensor"), call.integer("blockSize")
    axes = _axes(call, tensor)
    moved = tensor.movedim(axes, [-3, -2, -1])
    *lead, depth, height, width = moved.shape
    channels = depth // (block * block)
    if call.flag("usePixelShuffleOrder"):
        parts = moved.reshape(*lead, channels, block, block, height, width)
    else:
        parts = moved.reshape(*lead, block, block, channels, height, width).movedim(-3, -5)
    spread = _interleaved(parts).reshape(*lead, channels, height * block, width * block)
    return spread.movedim([-3, -2, -1], axes)


def _interleaved(parts: Tensor) -> Tensor:
    """[…, channels, rows, columns, H, W] → […, channels, H, rows, W, columns]."""
    lead = parts.dim() - 5
    order = [lead, lead + 3, lead + 1, lead + 4, lead + 2]
    return parts.permute(*range(lead), *order)


@METHODS.define(
    "spaceToDepth2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"
)
def space_to_depth(call: Arguments) -> Tensor:
    """Undoes `depth_to_space`."""
    tensor, block = call.tensor("spaceToDepth2DTensor"), call.integer("blockSize")
    axes = _axes(call, tensor)
    moved = tensor.movedim(axes, [-3, -2, -1])
    *lead, channels, height, width = moved.shape
    parts = moved.reshape(*lead, channels, height // block, block, width // block, block)
    first = len(lead)
    blocks = parts.permute(*range(first), first, first + 2, first + 4, first + 1, first + 3)
    if not call.flag("usePixelShuffleOrder"):
        blocks = blocks.movedim(-5, -3)
    packed = blocks.reshape(*lead, channels * block * block, height // block, width // block)
    return packed.movedim([-3, -2, -1], axes)
