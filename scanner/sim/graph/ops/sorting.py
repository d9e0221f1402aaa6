"""Sorting, the largest elements, one-hot vectors, places of non-zero elements.

From MPSGraphSortOps.h, MPSGraphTopKOps.h, MPSGraphOneHotOps.h, MPSGraphNonZeroOps.h. The order
of equal elements is not documented; it is theirs in the operand here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported

METHODS = Methods()


def _sorted(call: Arguments, part: str) -> tuple[Tensor, Tensor]:
    tensor = call.tensor(part)
    return torch.sort(
        tensor, dim=call.integer("axis"), descending=call.flag("descending"), stable=True
    )


@METHODS.define("sortWithTensor:axis:name:", "sortWithTensor:axis:descending:name:")
def sort(call: Arguments) -> Tensor:
    """Values in order along an axis."""
    return _sorted(call, "sortWithTensor")[0]


@METHODS.define("argSortWithTensor:axis:name:", "argSortWithTensor:axis:descending:name:")
def argsort(call: Arguments) -> Tensor:
    """Where the values in order are, as int32."""
    return _sorted(call, "argSortWithTensor")[1].int()


@METHODS.define("topKWithSourceTensor:k:name:")
def top_k(call: Arguments) -> tuple[Tensor, Tensor]:
    """The k largest along the last axis, and where they are."""
    tensor, count = call.tensor("topKWithSourceTensor"), call.integer("k")
    values, places = torch.sort(tensor, descending=True, stable=True)
    return values[..., :count], places[..., :count].int()


@METHODS.define("oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue:name:")
def one_hot(call: Arguments) -> Tensor:
    """A new axis along which the element that an index names is on."""
    indices = call.tensor("oneHotWithIndicesTensor")
    axis = call.integer("axis") % (indices.dim() + 1)
    shape = [-1 if dimension == axis else 1 for dimension in range(indices.dim() + 1)]
    classes = torch.arange(call.integer("depth"), device=indices.device).reshape(shape)
    on, off = (
        torch.tensor(call.number(part), device=indices.device).to(call.dtype("dataType"))
        for part in ("onValue", "offValue")
    )
    return torch.where(indices.unsqueeze(axis) == classes, on, off)


@METHODS.define("nonZeroIndicesOfTensor:name:")
def non_zero(call: Arguments) -> Tensor:
    """[count, rank] as int32, in row-major order."""
    tensor = call.tensor("nonZeroIndicesOfTensor")
    if tensor.is_meta:
        raise Unsupported("how many elements are not zero depends on data")
    return tensor.nonzero().int()
