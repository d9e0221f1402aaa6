"""Slices, padding and bands of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported
from scanner.sim.graph.ops.operands import axis, same_type

METHODS = Methods()

_CONSTANT, _REFLECT, _SYMMETRIC, _EDGE, _ZERO, _PERIODIC = range(6)
"""MPSGraphPaddingMode."""


@METHODS.define("sliceTensor:dimension:start:length:name:")
def _slice(call: Arguments) -> Tensor:
    tensor = call.tensor("sliceTensor")
    place = axis(call, "dimension", tensor.dim())
    start, length = call.integer("start"), call.integer("length")
    start = start + tensor.shape[place] if start < 0 else start
    return tensor.narrow(place, start, length)


@METHODS.define(
    "sliceTensor:starts:ends:strides:name:",
    "sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:",
)
def _strided_slice(call: Arguments) -> Tensor:
    tensor = call.tensor("sliceTensor")
    for place, chosen in enumerate(_ranges(call, tuple(tensor.shape))):
        tensor = tensor.index_select(place, _indices(chosen, tensor))
    return tensor.squeeze(_squeezed(call, tensor.dim()))


@METHODS.define(
    "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:"
)
def _slice_gradient(call: Arguments) -> Tensor:
    """Zeros of the source's shape, with the gradient where the slice was."""
    gradient, shape = call.tensor("sliceGradientTensor"), call.integers("fwdInShapeTensor")
    chosen = list(_ranges(call, shape))
    gradient = gradient.reshape([len(each) for each in chosen])
    for place, each in enumerate(chosen):
        wide = list(gradient.shape)
        wide[place] = shape[place]
        gradient = gradient.new_zeros(wide).index_copy(place, _indices(each, gradient), gradient)
    return gradient


def _ranges(call: Arguments, shape: tuple[int, ...]) -> Iterator[list[int]]:
    """The places that are kept on every axis, as Python slices count."""
    starts, ends, strides = (call.integers(part) for part in ("starts", "ends", "strides"))
    if not len(starts) == len(ends) == len(strides) == len(shape):
        raise Unsupported(f"{len(starts)} starts for a tensor of rank {len(shape)}")
    first, last = (int(call.get(part, 0)) for part in ("startMask", "endMask"))
    for place, size in enumerate(shape):
        start = None if first >> place & 1 else starts[place]
        end = None if last >> place & 1 else ends[place]
        yield list(range(*slice(start, end, strides[place]).indices(size)))


def _indices(places: list[int], tensor: Tensor) -> Tensor:
    return torch.tensor(places, dtype=torch.int64, device=tensor.device)


def _squeezed(call: Arguments, rank: int) -> tuple[int, ...]:
    mask = int(call.get("squeezeMask", 0))
    return tuple(place for place in range(rank) if mask >> place & 1)


@METHODS.define("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue:name:")
def _pad(call: Arguments) -> Tensor:
    """Negative padding takes elements away."""
    tensor, mode = call.tensor("padTensor"), call.integer("withPaddingMode")
    for place, (left, right) in enumerate(_paddings(call, tensor.dim())):
        size = tensor.shape[place]
        places = torch.arange(-left, size + right, device=tensor.device)
        if mode in (_CONSTANT, _ZERO):
            value = call.number("constantValue") if mode == _CONSTANT else 0.0
            tensor = _filled(tensor, place, places, value)
        else:
            tensor = tensor.index_select(place, _folded(places, size, mode))
    return tensor


@METHODS.define(
    "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding:name:"
)
def _pad_gradient(call: Arguments) -> Tensor:
    """Every element gets the gradients of its copies."""
    gradient = call.tensor("padGradientWithIncomingGradientTensor")
    source, mode = call.tensor("sourceTensor"), call.integer("paddingMode")
    for place, (left, right) in enumerate(_paddings(call, source.dim())):
        size = source.shape[place]
        places = torch.arange(-left, size + right, device=gradient.device)
        if mode in (_CONSTANT, _ZERO):
            gradient = _filled(gradient, place, torch.arange(left, left + size), 0.0)
            continue
        wide = list(gradient.shape)
        wide[place] = size
        folded = _folded(places, size, mode)
        gradient = gradient.new_zeros(wide).index_add(place, folded, gradient)
    return gradient


def _paddings(call: Arguments, rank: int) -> list[tuple[int, int]]:
    left, right = call.integers("leftPadding"), call.integers("rightPadding")
    if not len(left) == len(right) == rank:
        raise Unsupported(f"{len(left)} paddings for a tensor of rank {rank}")
    return list(zip(left, right, strict=True))


def _filled(tensor: Tensor, place: int, places: Tensor, value: float) -> Tensor:
    """The elements at these places of an axis; the value where there is none."""
    places = places.to(tensor.device)
    size = tensor.shape[place]
    outside = (places < 0) | (places >= size)
    if size == 0:
        shape = (*tensor.shape[:place], len(places), *tensor.shape[place + 1 :])
        return tensor.new_full(shape, value)
    found = tensor.index_select(place, places.clamp(0, size - 1))
    mask = outside.reshape([-1 if at == place else 1 for at in range(tensor.dim())])
    return found.masked_fill(mask, value)


def _folded(places: Tensor, size: int, mode: int) -> Tensor:
    """The element that stands at a place beyond the edges."""
    if mode == _EDGE:
        return places.clamp(0, size - 1)
    if mode == _PERIODIC:
        return places % size
    if mode == _REFLECT:
        around = places % max(2 * (size - 1), 1)
        return torch.where(around < size, around, 2 * (size - 1) - around)
    if mode == _SYMMETRIC:
        around = places % (2 * size)
        return torch.where(around < size, around, 2 * size - 1 - around)
    raise Unsupported(f"padding mode {mode}")


@METHODS.define(
    "bandPartWithTensor:numLower:numUpper:name:",
    "bandPartWithTensor:numLowerTensor:numUpperTensor:name:",
)
def _band(call: Arguments) -> Tensor:
    """Keeps diagonals near the main one; a negative number keeps all on that side."""
    tensor = call.tensor("bandPartWithTensor")
    suffix = "" if "numLower" in call else "Tensor"
    lower, upper = call.integer(f"numLower{suffix}"), call.integer(f"numUpper{suffix}")
    rows, columns = (torch.arange(size, device=tensor.device) for size in tensor.shape[-2:])
    above = columns - rows.unsqueeze(1)
    drop = (above > upper if upper >= 0 else above != above) | (
        above < -lower if lower >= 0 else above != above
    )
    return tensor.masked_fill(drop, 0)


@METHODS.define("sliceUpdateDataTensor:updateTensor:starts:ends:strides:name:")
def _slice_update(call: Arguments) -> Tensor:
    data, update = call.tensor("sliceUpdateDataTensor"), call.tensor("updateTensor")
    same_type(data, update)
    places = [_indices(each, data) for each in _ranges(call, tuple(data.shape))]
    return data.index_put(tuple(torch.meshgrid(*places, indexing="ij")), update)
