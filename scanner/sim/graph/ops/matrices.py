"""Products and inverses of matrices, and softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Unsupported
from scanner.sim.graph.ops.operands import axis, floating, of_one, same_type

METHODS = Methods()


@METHODS.define("matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:")
def _multiply(call: Arguments) -> Tensor:
    """The last two axes are matrices, those before are broadcast."""
    first, second = call.operands()
    same_type(first, second)
    if min(first.dim(), second.dim()) < 2:
        raise Unsupported(f"of ranks {first.dim()} and {second.dim()}")
    return torch.matmul(floating(first), second)


METHODS.define("inverseOfTensor:name:")(of_one(lambda tensor: torch.linalg.inv_ex(tensor)[0]))


@METHODS.define("softMaxWithTensor:axis:name:")
def _softmax(call: Arguments) -> Tensor:
    tensor = floating(call.tensor("softMaxWithTensor"))
    return tensor.softmax(axis(call, "axis", tensor.dim()))
