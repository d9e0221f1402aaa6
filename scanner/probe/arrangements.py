"""What the CPU answers when the same elements lie differently in memory.

Its vector loop and the scalar loop for what is left over treat NaN differently in some kernels.
Where two answers are given for one element, torch promises neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from scanner.probe.rebuild import Operands
from scanner.probe.reference import evaluate
from scanner.probe.schema import Schema
from scanner.records import OpCall

__all__ = ["answers"]

_COPIES = 32
"""So many that the first lies in whole vectors of any width."""
_LARGEST = 1 << 20
"""Elements of one operand; larger ones are mostly vectors as they are."""


def answers(schema: Schema, call: OpCall, operands: Operands) -> Iterator[dict[str, Tensor]]:
    """Outputs of a pointwise op by its scalar loop, then by its vector loop."""
    tensors = operands.tensors
    plain = all(t.layout == torch.strided and t.numel() <= _LARGEST for t in tensors)
    if not plain or not _elementwise(schema, call):
        return
    rank = max((tensor.dim() for tensor in tensors), default=0)
    scalar = evaluate(schema, call, _each(tensors, _apart))
    yield scalar.outputs
    vector = evaluate(schema, call, _each(tensors, _repeated(rank)))
    yield {name: value[0] for name, value in vector.outputs.items() if value.dim()}


def _elementwise(schema: Schema, call: OpCall) -> bool:
    """By torch's tag, which backward ops lack: those of one shape that name no dimension."""
    backward = "backward" in schema.family and len({spec.shape for spec in call.inputs}) == 1
    tagged = "pointwise" in schema.tags and not schema.foreach
    return tagged or (backward and "dim" not in call.attributes)


def _each(tensors: Sequence[Tensor], arrange: Callable[[Tensor], Tensor]) -> list[Tensor]:
    # A tensor without dimensions takes part in type promotion differently: it stays one.
    return [arrange(tensor) if tensor.dim() else tensor.clone() for tensor in tensors]


def _apart(tensor: Tensor) -> Tensor:
    """With a gap after each element."""
    return torch.stack([tensor, tensor], dim=-1)[..., 0]


def _repeated(rank: int) -> Callable[[Tensor], Tensor]:
    """Several copies one after the other, along a new first dimension."""

    def arrange(tensor: Tensor) -> Tensor:
        aligned = tensor.reshape((1,) * (rank - tensor.dim()) + tuple(tensor.shape))
        return aligned.expand(_COPIES, *aligned.shape).contiguous()

    return arrange
