"""Gathering and scattering by indices.

From MPSGraphGatherOps.h, MPSGraphScatterNDOps.h and their …AlongAxis kin. What an index out of
range does is not documented, so it is refused, but for one that a release relies on. Which of
several values stays in mode *set* is not documented either; it is the last here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported

METHODS = Methods()


def _checked(indices: Tensor, length: int) -> Tensor:
    """Indices as int64; Unsupported when one is out of range."""
    wide = indices.long()
    if not wide.is_meta and ((wide < 0) | (wide >= length)).any():
        raise Unsupported(f"an index outside of a dimension of {length}")
    return wide


@METHODS.define("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:")
def gather(call: Arguments) -> Tensor:
    """Slices along an axis; leading batch dimensions go together."""
    source, indices = call.tensor("gatherWithUpdatesTensor"), call.tensor("indicesTensor")
    axis, batches = call.integer("axis") % source.dim(), call.integer("batchDimensions")
    shape = source.shape
    before, after = shape[batches:axis], shape[axis + 1 :]
    length, wanted = shape[axis], indices.shape[batches:]
    flat = source.reshape(prod(shape[:batches]), prod(before), length, prod(after))
    places = _checked(indices, length).reshape(flat.shape[0], 1, prod(wanted), 1)
    places = places.expand(-1, flat.shape[1], -1, flat.shape[3])
    return flat.gather(2, places).reshape(*shape[:axis], *wanted, *after)


@METHODS.define("gatherAlongAxis:withUpdatesTensor:indicesTensor:name:")
def gather_along_axis(call: Arguments) -> Tensor:
    """One element for each index; shapes agree except along the axis."""
    source, indices = call.tensor("withUpdatesTensor"), call.tensor("indicesTensor")
    axis = call.integer("gatherAlongAxis") % source.dim()
    _check_agreement(source.shape, indices.shape, axis)
    return source.gather(axis, _checked(indices, source.shape[axis]))


def _check_agreement(first: Sequence[int], second: Sequence[int], axis: int) -> None:
    others = [[*shape[:axis], *shape[axis + 1 :]] for shape in (first, second)]
    if len(first) != len(second) or others[0] != others[1]:
        raise Unsupported(f"shapes {tuple(first)} and {tuple(second)} along axis {axis}")


def _reduced(reduction: str) -> Callable[[Tensor, int, Tensor, Tensor], Tensor]:
    return lambda data, axis, places, updates: data.scatter_reduce(
        axis, places, updates, reduction, include_self=True
    )


def _divided(data: Tensor, axis: int, places: Tensor, updates: Tensor) -> Tensor:
    return data / torch.ones_like(data).scatter_reduce(axis, places, updates, "prod")


_MODES: tuple[Callable[[Tensor, int, Tensor, Tensor], Tensor], ...] = (
    lambda data, axis, places, updates: data.scatter_add(axis, places, updates),
    lambda data, axis, places, updates: (
        data - torch.zeros_like(data).scatter_add(axis, places, updates)
    ),
    _reduced("prod"),
    _divided,
    _reduced("amin"),
    _reduced("amax"),
    lambda data, axis, places, updates: data.scatter(axis, places, updates),
)
"""By MPSGraphScatterMode: add, sub, mul, div, min, max, set."""
_ADD, _SUB, _SET = 0, 1, 6


def _scatter(data: Tensor, axis: int, indices: Tensor, updates: Tensor, mode: int) -> Tensor:
    """Elements of `updates`, one for each index, brought into a copy of `data`.

    A negative index has no effect, and places in int32 may be scattered into int64: the
    `nonzero` of 2.0 relies on both.
    """
    if not 0 <= mode < len(_MODES):
        raise Unsupported(f"scatter mode {mode}")
    if {data.dtype, updates.dtype} == {torch.int32, torch.int64}:
        updates = updates.to(data.dtype)
    length = data.shape[axis]
    dropped = indices < 0
    if indices.is_meta or not dropped.any():
        return _MODES[mode](data, axis, _checked(indices, length), updates)
    _checked(indices[~dropped], length)
    shape = [1 if place == axis else size for place, size in enumerate(data.shape)]
    longer = torch.cat([data, data.new_ones(shape)], axis)
    places = indices.long().masked_fill(dropped, length)
    return _MODES[mode](longer, axis, places, updates).narrow(axis, 0, length)


def _empty(call: Arguments, updates: Tensor, mode: int) -> Tensor:
    """What is scattered into when no data are given: zeros."""
    if mode not in (_ADD, _SUB, _SET):
        raise Unsupported(f"scatter mode {mode} without data")
    return updates.new_zeros(call.integers("shape"))


@METHODS.define("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode:name:")
def scatter_along_axis(call: Arguments) -> Tensor:
    """One element for each index."""
    data, updates = call.tensor("withDataTensor"), call.tensor("updatesTensor")
    axis = call.integer("scatterAlongAxis") % data.dim()
    indices = call.tensor("indicesTensor")
    _check_agreement(data.shape, updates.shape, axis)
    if indices.shape != updates.shape:
        raise Unsupported(f"indices {tuple(indices.shape)} for updates {tuple(updates.shape)}")
    return _scatter(data, axis, indices, updates, call.integer("mode"))


def _scatter_slices(call: Arguments, data: Tensor, updates: Tensor, mode: int) -> Tensor:
    axis, indices = call.integer("axis") % data.dim(), call.tensor("indicesTensor")
    if indices.dim() != 1 or indices.shape[0] != updates.shape[axis]:
        raise Unsupported(f"indices {tuple(indices.shape)} for updates {tuple(updates.shape)}")
    _check_agreement(data.shape, updates.shape, axis)
    shape = [-1 if dimension == axis else 1 for dimension in range(data.dim())]
    places = indices.reshape(shape).expand(updates.shape)
    return _scatter(data, axis, places, updates, mode)


@METHODS.define("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode:name:")
def scatter(call: Arguments) -> Tensor:
    """Slices along an axis."""
    data, updates = call.tensor("scatterWithDataTensor"), call.tensor("updatesTensor")
    return _scatter_slices(call, data, updates, call.integer("mode"))


@METHODS.define("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode:name:")
def scatter_into_zeros(call: Arguments) -> Tensor:
    """Slices along an axis of zeros."""
    updates, mode = call.tensor("scatterWithUpdatesTensor"), call.integer("mode")
    return _scatter_slices(call, _empty(call, updates, mode), updates, mode)


def _linear(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Positions in flattened `sizes` of the index vectors in the last axis."""
    found = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=indices.device)
    for number, size in enumerate(sizes):
        found = found * size + _checked(indices[..., number], size)
    return found


def _scatter_nd(call: Arguments, data: Tensor, updates: Tensor, mode: int) -> Tensor:
    indices, batches = call.tensor("indicesTensor"), call.integer("batchDimensions")
    depth = batches + indices.shape[-1]
    places = _linear(indices, data.shape[batches:depth]).reshape(prod(data.shape[:batches]), -1)
    offsets = torch.arange(places.shape[0], device=places.device)[:, None]
    places = (places + offsets * prod(data.shape[batches:depth])).reshape(-1, 1)
    flat = data.reshape(prod(data.shape[:depth]), prod(data.shape[depth:]))
    rows = updates.reshape(places.shape[0], flat.shape[1])
    return _scatter(flat, 0, places.expand_as(rows), rows, mode).reshape(data.shape)


@METHODS.define("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode:name:")
def scatter_nd_into_zeros(call: Arguments) -> Tensor:
    """Slices at index vectors of zeros."""
    updates, mode = call.tensor("scatterNDWithUpdatesTensor"), call.integer("mode")
    return _scatter_nd(call, _empty(call, updates, mode), updates, mode)


@METHODS.define("scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode:name:")
def scatter_nd(call: Arguments) -> Tensor:
    """Slices at index vectors."""
    data, updates = call.tensor("scatterNDWithDataTensor"), call.tensor("updatesTensor")
    return _scatter_nd(call, data, updates, call.integer("mode"))
