"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from scanner.sim.graph.casts import cast
from scanner.sim.graph.methods import Arguments, Methods, Unsupported
from scanner.sim.graph.ops.operands import floating, of_one

METHODS = Methods()

_FLOATING: dict[str, Callable[[Tensor], Tensor]] = {
    "acosWithTensor:name:": torch.acos,
    "acoshWithTensor:name:": torch.acosh,
    "asinWithTensor:name:": torch.asin,
    "asinhWithTensor:name:": torch.asinh,
    "atanWithTensor:name:": torch.atan,
    "atanhWithTensor:name:": torch.atanh,
    "cosWithTensor:name:": torch.cos,
    "coshWithTensor:name:": torch.cosh,
    "erfWithTensor:name:": torch.erf,
    "exponentBase2WithTensor:name:": torch.exp2,
    "exponentWithTensor:name:": torch.exp,
    "logarithmBase10WithTensor:name:": torch.log10,
    "logarithmBase2WithTensor:name:": torch.log2,
    "logarithmWithTensor:name:": torch.log,
    "reciprocalSquareRootWithTensor:name:": torch.rsqrt,
    "reciprocalWithTensor:name:": torch.reciprocal,
    "reverseSquareRootWithTensor:name:": torch.rsqrt,
    "sigmoidWithTensor:name:": torch.sigmoid,
    "sinWithTensor:name:": torch.sin,
    "sinhWithTensor:name:": torch.sinh,
    "squareRootWithTensor:name:": torch.sqrt,
    "tanWithTensor:name:": torch.tan,
    "tanhWithTensor:name:": torch.tanh,
}
_ROUNDING: dict[str, Callable[[Tensor], Tensor]] = {
    "ceilWithTensor:name:": torch.ceil,
    "floorWithTensor:name:": torch.floor,
    "roundWithTensor:name:": torch.round,
    "truncateWithTensor:name:": torch.trunc,
}
"""Integers stay as they are."""


def _sign(tensor: Tensor) -> Tensor:
    return torch.sgn(tensor)


def _magnitude(tensor: Tensor) -> Tensor:
    """The type stays: of complex numbers the imaginary part becomes zero."""
    return tensor.abs().to(tensor.dtype)


def _imaginary(tensor: Tensor) -> Tensor:
    return tensor.imag if tensor.is_complex() else torch.zeros_like(tensor)


_ANY: dict[str, Callable[[Tensor], Tensor]] = {
    "absoluteWithTensor:name:": _magnitude,
    "conjugateWithTensor:name:": torch.conj_physical,
    "identityWithTensor:name:": lambda tensor: tensor,
    "imaginaryPartOfTensor:name:": _imaginary,
    "isInfiniteWithTensor:name:": torch.isinf,
    "isNaNWithTensor:name:": torch.isnan,
    "negativeWithTensor:name:": torch.neg,
    "notWithTensor:name:": torch.logical_not,
    "reLUWithTensor:name:": torch.relu,
    "realPartOfTensor:name:": torch.real,
    "signWithTensor:name:": _sign,
    "signbitWithTensor:name:": torch.signbit,
    "squareWithTensor:name:": torch.square,
}


def _floats(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda tensor: function(floating(tensor))


for _selector, _function in _FLOATING.items():
    METHODS.define(_selector)(of_one(_floats(_function)))
for _selector, _function in (_ROUNDING | _ANY).items():
    METHODS.define(_selector)(of_one(_function))


@METHODS.define("castTensor:toType:name:")
def _cast(call: Arguments) -> Tensor:
    return cast(call.tensor("castTensor"), call.dtype("toType"))


@METHODS.define("reinterpretCastTensor:toType:name:")
def _reinterpreted(call: Arguments) -> Tensor:
    tensor, dtype = call.tensor("reinterpretCastTensor"), call.dtype("toType")
    if tensor.dtype.itemsize != dtype.itemsize:
        raise Unsupported("to a type of another size")
    return tensor.contiguous().view(dtype)
