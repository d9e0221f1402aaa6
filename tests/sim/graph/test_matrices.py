from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from scanner.sim.executors import Done, NotExecutable
from scanner.sim.graph.interpreter import Interpreter
from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.recording import Argument, Descriptor, KernelRun
from tests.sim.graph.calls import compute
from tests.sim.graph.runs import data

PRODUCT = "matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:"
A = torch.tensor([[[1.0, 2.0], [4.0, 2.0]]])


def kernel(name: str, settings: dict[str, Any], **operands: Any) -> KernelRun:
    made = {
        part: data(value) if isinstance(value, torch.Tensor) else tuple(map(data, value))
        for part, value in operands.items()
    }
    arguments = tuple(Argument(part, value) for part, value in made.items())
    return KernelRun(Descriptor(name, settings), "encode…", arguments)


def test_products_broadcast_what_lies_before_the_matrices() -> None:
    first, second = torch.ones(2, 1, 3), torch.ones(3, 4)
    assert torch.equal(compute(PRODUCT, first, second), torch.full((2, 1, 4), 3.0))
    with pytest.raises(Unsupported, match="of ranks 1 and 2"):
        compute(PRODUCT, torch.ones(3), second)
    with pytest.raises(Unsupported, match="of int64"):
        compute(PRODUCT, second.long(), second.long())


def test_softmax_and_inverse() -> None:
    assert compute("softMaxWithTensor:axis:name:", torch.zeros(1, 4), -1).tolist() == [[0.25] * 4]
    found = compute("inverseOfTensor:name:", A)
    torch.testing.assert_close(found @ A, torch.eye(2)[None])


def test_a_decomposition_is_written_over_its_source() -> None:
    """Row 1 has the larger first element: it is the pivot, counted from zero."""
    matrix = A.clone()
    pivots = torch.zeros(1, 1, 2, dtype=torch.int32).view(torch.uint32)
    status = torch.full((8,), 255, dtype=torch.uint8)
    made = kernel(
        "MPSMatrixDecompositionLU", {"rows": 2, "columns": 2},
        sourceMatrix=matrix, resultMatrix=matrix, pivotIndices=pivots, status=status,
    )  # fmt: skip
    assert Interpreter().run_kernel(made) == Done()
    assert matrix.tolist() == [[[4, 2], [0.25, 1.5]]]
    assert pivots.tolist() == [[[1, 1]]]
    assert status.tolist() == [0, 0, 0, 0, 255, 255, 255, 255]
    solution, given = torch.zeros(1, 2, 1), torch.tensor([[[5.0], [8.0]]])
    solve = kernel(
        "MPSMatrixSolveLU", {"transpose": False, "order": 2, "numberOfRightHandSides": 1},
        sourceMatrix=matrix, pivotIndices=pivots, solutionMatrix=solution,
        rightHandSideMatrix=given,
    )  # fmt: skip
    assert Interpreter().run_kernel(solve) == Done()
    torch.testing.assert_close(solution, torch.tensor([[[1.0], [2.0]]]))


def test_a_singular_matrix_has_a_status() -> None:
    matrix, status = torch.zeros(1, 1, 1), torch.zeros(4, dtype=torch.uint8)
    pivots = torch.zeros(1, 1, 1, dtype=torch.int32).view(torch.uint32)
    operands = {"sourceMatrix": matrix, "resultMatrix": matrix, "pivotIndices": pivots}
    made = kernel("MPSMatrixDecompositionLU", {}, status=status, **operands)
    assert Interpreter().run_kernel(made) == Done()
    assert status.view(torch.int32).item() == -2


@pytest.mark.parametrize("transpose", [False, True])
def test_a_triangular_system(transpose: bool) -> None:
    upper = torch.tensor([[[2.0, 4.0], [0.0, 1.0]]])
    settings = {"right": False, "upper": True, "transpose": transpose, "unit": False, "alpha": 2.0}
    truth = torch.tensor([[[1.0], [3.0]]])
    given, found = (upper.mT if transpose else upper) @ truth / 2, torch.zeros(1, 2, 1)
    made = kernel(
        "MPSMatrixSolveTriangular", settings,
        sourceMatrix=upper, rightHandSideMatrix=given, solutionMatrix=found,
    )  # fmt: skip
    assert Interpreter().run_kernel(made) == Done()
    torch.testing.assert_close(found, truth)


def test_a_product_of_arrays() -> None:
    out = torch.zeros(1, 2, 2)
    sources = (A, torch.eye(2)[None] * 2)
    made = kernel("MPSNDArrayMatrixMultiplication", {}, sourceArrays=sources, destinationArray=out)
    assert Interpreter().run_kernel(made) == Done()
    assert torch.equal(out, A * 2)


def test_kernels_that_are_not_modelled() -> None:
    made = kernel("MPSImageGaussianBlur", {})
    assert Interpreter().run_kernel(made) == NotExecutable(
        "the kernel MPSImageGaussianBlur is not modelled"
    )
    lost = msgspec.structs.replace(made, kernel=Descriptor("MPSMatrixSolveLU", {}))
    assert Interpreter().run_kernel(lost) == NotExecutable(
        "MPSMatrixSolveLU: no memory for sourceMatrix"
    )
