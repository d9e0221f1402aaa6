"""Inverse and bands of matrices. From MPSGraphMatrixInverseOps.h and …MatrixMultiplicationOps.h."""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods

METHODS = Methods()


@METHODS.define("inverseOfTensor:name:")
def inverse(call: Arguments) -> Tensor:
    """Inverses of the last two axes; a singular matrix is refused."""
    found: Tensor = torch.linalg.inv(call.tensor("inverseOfTensor"))
    return found


def _band(tensor: Tensor, lower: int, upper: int) -> Tensor:
    kept = tensor
    if lower >= 0:
        kept = kept.triu(-lower)
    return kept.tril(upper) if upper >= 0 else kept.clone()


@METHODS.define("bandPartWithTensor:numLower:numUpper:name:")
def band_part(call: Arguments) -> Tensor:
    """The diagonal with so many below and above it; a negative number means all."""
    tensor = call.tensor("bandPartWithTensor")
    return _band(tensor, call.integer("numLower"), call.integer("numUpper"))


@METHODS.define("bandPartWithTensor:numLowerTensor:numUpperTensor:name:")
def band_part_of_tensors(call: Arguments) -> Tensor:
    """The same with the numbers in tensors."""
    tensor = call.tensor("bandPartWithTensor")
    return _band(tensor, call.integer("numLowerTensor"), call.integer("numUpperTensor"))
