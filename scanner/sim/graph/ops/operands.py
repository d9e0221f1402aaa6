"""What families share: axes, types of operands, functions of one and of two tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Method, Unsupported

__all__ = ["axes", "axis", "floating", "of_one", "of_two", "same_type"]


def axis(call: Arguments, part: str, rank: int) -> int:
    """An axis counted from the front."""
    return _checked(call.integer(part), rank)


def axes(call: Arguments, part: str, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them when the argument is nil."""
    if part not in call:
        return tuple(range(rank))
    return tuple(dict.fromkeys(_checked(number, rank) for number in call.integers(part)))


def _checked(number: int, rank: int) -> int:
    if not -rank <= number < rank:
        raise Unsupported(f"axis {number} of a tensor of rank {rank}")
    return number % rank


def same_type(*tensors: Tensor) -> None:
    """Unsupported when types differ: MPSGraph promotes nothing and ends the process."""
    names = list(dict.fromkeys(str(tensor.dtype).removeprefix("torch.") for tensor in tensors))
    if len(names) > 1:
        raise Unsupported(f"of different types: {', '.join(names)}")


def floating(tensor: Tensor) -> Tensor:
    """The tensor; Unsupported when its elements are integers, which torch would promote."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise Unsupported(f"of {str(tensor.dtype).removeprefix('torch.')}")
    return tensor


def of_one(function: Callable[[Tensor], Tensor]) -> Method:
    """A method with one tensor and no options."""

    def compute(call: Arguments) -> Tensor:
        (operand,) = call.operands()
        return function(operand)

    return compute


def of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Method:
    """A method with two tensors of one type, which are broadcast."""

    def compute(call: Arguments) -> Tensor:
        first, second = call.operands()
        same_type(first, second)
        return function(*torch.broadcast_tensors(first, second))

    return compute
