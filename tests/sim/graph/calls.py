"""Calls a graph method on tensors, without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments
from scanner.sim.graph.ops import all_methods
from scanner.sim.graph.recording import Argument, Op, Ref


def arguments(selector: str, *values: Any, outputs: int = 1) -> Arguments:
    """The arguments of a call; tensors and sequences of tensors become references."""
    operands: dict[int, Tensor] = {}

    def recorded(value: Any) -> Any:
        if isinstance(value, Tensor):
            operands[len(operands) + 1] = value
            return Ref(len(operands))
        if isinstance(value, list | tuple):
            return tuple(recorded(item) for item in value)
        return value

    parts = selector.split(":")[:-1]
    given = (*values, None) if len(values) == len(parts) - 1 else values
    made = tuple(Argument(part, recorded(value)) for part, value in zip(parts, given, strict=True))
    first = len(operands) + 1
    return Arguments(Op(selector, made, tuple(range(first, first + outputs))), operands)


def compute(selector: str, *values: Any, outputs: int = 1) -> Any:
    """What the method returns. `name:` may be left out."""
    return all_methods()[selector](arguments(selector, *values, outputs=outputs))


def assert_equal(found: Tensor | Sequence[Tensor], expected: Tensor) -> None:
    """Same dtype, shape and content; NaN equals NaN."""
    assert isinstance(found, Tensor)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
