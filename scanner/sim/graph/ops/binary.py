"""Arithmetic, comparison, logic and choice between tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods
from scanner.sim.graph.ops.operands import of_two, same_type

METHODS = Methods()


def _divide(first: Tensor, second: Tensor) -> Tensor:
    """Integers are truncated. What division by zero gives is not defined; here it is zero."""
    if first.is_floating_point() or first.is_complex():
        return first / second
    zero = second == 0
    quotient = torch.div(first, second.masked_fill(zero, 1), rounding_mode="trunc")
    return quotient.masked_fill(zero, 0)


def _divide_no_nan(first: Tensor, second: Tensor) -> Tensor:
    """Zero where the divisor is zero."""
    return _divide(first, second).masked_fill(second == 0, 0)


def _multiply(first: Tensor, second: Tensor) -> Tensor:
    return first * second


def _larger(first: Tensor, second: Tensor) -> Tensor:
    """Metal's `max`: a number beats NaN."""
    return torch.fmax(first, second)


def _smaller(first: Tensor, second: Tensor) -> Tensor:
    return torch.fmin(first, second)


_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "addition": torch.add,
    "atan2": torch.atan2,
    "division": _divide,
    "divisionNoNaN": _divide_no_nan,
    "equal": torch.eq,
    "greaterThan": torch.gt,
    "greaterThanOrEqualTo": torch.ge,
    "lessThan": torch.lt,
    "lessThanOrEqualTo": torch.le,
    "logicalAND": torch.logical_and,
    "logicalOR": torch.logical_or,
    "logicalXOR": torch.logical_xor,
    "maximum": _larger,
    "maximumWithNaNPropagation": torch.maximum,
    "maximumWithNaNPropagationAndIntFallback": torch.maximum,
    "minimum": _smaller,
    "minimumWithNaNPropagation": torch.minimum,
    "minimumWithNaNPropagationAndIntFallback": torch.minimum,
    "multiplication": _multiply,
    "notEqual": torch.ne,
    "power": torch.pow,
    "subtraction": torch.sub,
}

for _name, _function in _BINARY.items():
    METHODS.define(f"{_name}WithPrimaryTensor:secondaryTensor:name:")(of_two(_function))


@METHODS.define("selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:")
def _select(call: Arguments) -> Tensor:
    condition, yes, no = call.operands()
    same_type(yes, no)
    return torch.where(condition != 0, yes, no)


@METHODS.define("clampWithTensor:minValueTensor:maxValueTensor:name:")
def _clamp(call: Arguments) -> Tensor:
    """NaN becomes a bound, which is why PyTorch's own clamp avoids this method."""
    tensor, low, high = call.operands()
    same_type(tensor, low, high)
    return torch.fmin(torch.fmax(tensor, low), high)
