"""Reductions, which keep every axis with size 1, and running totals."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Method, Methods
from scanner.sim.graph.ops.operands import axes, axis

METHODS = Methods()

Reduction = Callable[[Tensor, tuple[int, ...]], Tensor]


def _sum(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    """Truth values are counted: `nanmedian` takes such a sum from an int32."""
    dtype = torch.int32 if tensor.dtype == torch.bool else tensor.dtype
    return tensor.sum(over, keepdim=True, dtype=dtype)


def _product(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    for place in over:
        tensor = tensor.prod(place, keepdim=True, dtype=tensor.dtype)
    return tensor


def _largest(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return tensor.amax(over, keepdim=True)


def _smallest(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return tensor.amin(over, keepdim=True)


def _without_nan(tensor: Tensor, instead: float) -> Tensor:
    return tensor.masked_fill(tensor.isnan(), instead) if tensor.is_floating_point() else tensor


def _largest_number(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return _largest(_without_nan(tensor, -math.inf), over)


def _smallest_number(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return _smallest(_without_nan(tensor, math.inf), over)


def _all(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return (tensor != 0).all(over, keepdim=True)


def _any(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return (tensor != 0).any(over, keepdim=True)


def _mean(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    return tensor.mean(over, keepdim=True)


def _variance(tensor: Tensor, over: tuple[int, ...]) -> Tensor:
    """Of the population: PyTorch corrects it afterwards."""
    if tensor.is_complex():
        return torch.complex(
            tensor.var(over, correction=0, keepdim=True), torch.zeros(()).to(tensor.real)
        )
    return tensor.var(over, correction=0, keepdim=True)


_REDUCTIONS: dict[str, Reduction] = {
    "reductionAndWithTensor": _all,
    "reductionMaximumPropagateNaNWithTensor": _largest,
    "reductionMaximumWithTensor": _largest_number,
    "reductionMinimumPropagateNaNWithTensor": _smallest,
    "reductionMinimumWithTensor": _smallest_number,
    "reductionOrWithTensor": _any,
    "reductionProductWithTensor": _product,
    "reductionSumWithTensor": _sum,
    "meanOfTensor": _mean,
    "varianceOfTensor": _variance,
}


def _over_axes(reduction: Reduction, part: str) -> Method:
    def compute(call: Arguments) -> Tensor:
        (tensor,) = call.operands()
        over = axes(call, part, tensor.dim())
        return reduction(tensor, over) if over else tensor

    return compute


for _name, _reduction in _REDUCTIONS.items():
    for _part in ("axes", "axis"):
        METHODS.define(f"{_name}:{_part}:name:")(_over_axes(_reduction, _part))


@METHODS.define("reductionArgMaximumWithTensor:axis:name:")
def _argmax(call: Arguments) -> Tensor:
    (tensor,) = call.operands()
    place = axis(call, "axis", tensor.dim())
    return _ordered(_without_nan(tensor, -math.inf)).argmax(place, keepdim=True).int()


@METHODS.define("reductionArgMinimumWithTensor:axis:name:")
def _argmin(call: Arguments) -> Tensor:
    (tensor,) = call.operands()
    place = axis(call, "axis", tensor.dim())
    return _ordered(_without_nan(tensor, math.inf)).argmin(place, keepdim=True).int()


def _ordered(tensor: Tensor) -> Tensor:
    return tensor.byte() if tensor.dtype == torch.bool else tensor


@METHODS.define("cumulativeSumWithTensor:axis:name:")
def _running_sum(call: Arguments) -> Tensor:
    (tensor,) = call.operands()
    return tensor.cumsum(axis(call, "axis", tensor.dim()), dtype=tensor.dtype)


@METHODS.define("cumulativeProductWithTensor:axis:name:")
def _running_product(call: Arguments) -> Tensor:
    (tensor,) = call.operands()
    return tensor.cumprod(axis(call, "axis", tensor.dim()), dtype=tensor.dtype)
