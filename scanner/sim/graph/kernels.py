"""Metal Performance Shaders kernels outside graphs, by torch and LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from scanner.sim.graph.memory import read, write
from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.recording import KernelRun, TensorData

__all__ = ["run"]

_SUCCESS, _SINGULAR = 0, -2
"""MPSMatrixDecompositionStatus."""


class _Operands:
    """Arguments and settings of a kernel's run."""

    def __init__(self, run: KernelRun) -> None:
        self.settings = run.kernel.properties
        self._data = {argument.part: argument.value for argument in run.arguments}

    def place(self, part: str) -> TensorData:
        """Memory of a matrix, array or buffer."""
        found = self._data.get(part)
        if not isinstance(found, TensorData):
            raise Unsupported(f"no memory for {part}")
        return found

    def read(self, part: str) -> Tensor:
        """A matrix's content."""
        return read(self.place(part))

    def arrays(self, part: str) -> list[Tensor]:
        """Contents of several arrays."""
        found = self._data.get(part)
        if not isinstance(found, tuple) or not all(isinstance(x, TensorData) for x in found):
            raise Unsupported(f"no arrays for {part}")
        return [read(item) for item in found]

    def status(self, value: int) -> None:
        """Reports success or failure where the host code asked for it."""
        if isinstance(found := self._data.get("status"), TensorData):
            scalar = TensorData(found.address, found.nbytes, (1,), "int32")
            write(scalar, torch.tensor([value], dtype=torch.int32))


def run(kernel: KernelRun) -> None:
    """Computes what the kernel writes. Unsupported for kernels that are not modelled."""
    work = _KERNELS.get(kernel.kernel.name)
    if work is None:
        raise Unsupported(f"the kernel {kernel.kernel.name} is not modelled")
    try:
        work(_Operands(kernel))
    except Unsupported as error:
        raise Unsupported(f"{kernel.kernel.name}: {error}") from error


def _decompose(operands: _Operands) -> None:
    """Rows and pivots count from zero, as in `MPSMatrixDecompositionLU`."""
    factors, pivots, info = torch.linalg.lu_factor_ex(operands.read("sourceMatrix"))
    write(operands.place("resultMatrix"), factors)
    write(operands.place("pivotIndices"), (pivots - 1).to(torch.uint32))
    operands.status(_SINGULAR if bool((info != 0).any()) else _SUCCESS)


def _solve(operands: _Operands) -> None:
    factors = operands.read("sourceMatrix")
    pivots = operands.read("pivotIndices").to(torch.int32).reshape(factors.shape[:-1]) + 1
    solution = torch.linalg.lu_solve(
        factors,
        pivots,
        operands.read("rightHandSideMatrix"),
        adjoint=bool(operands.settings.get("transpose")),
    )
    write(operands.place("solutionMatrix"), solution)


def _solve_triangular(operands: _Operands) -> None:
    settings = operands.settings
    matrix = operands.read("sourceMatrix")
    upper, transposed = bool(settings["upper"]), bool(settings["transpose"])
    solution = torch.linalg.solve_triangular(
        matrix.mT if transposed else matrix,
        operands.read("rightHandSideMatrix") * float(settings["alpha"]),
        upper=upper != transposed,
        left=not settings["right"],
        unitriangular=bool(settings["unit"]),
    )
    write(operands.place("solutionMatrix"), solution)


def _multiply_arrays(operands: _Operands) -> None:
    """The product of two arrays, plus a third one where there is one: a layer's bias."""
    first, second, *added = operands.arrays("sourceArrays")
    product = torch.matmul(first, second)
    write(operands.place("destinationArray"), product + added[0] if added else product)


_KERNELS: Mapping[str, Callable[[_Operands], None]] = {
    "MPSMatrixDecompositionLU": _decompose,
    "MPSMatrixSolveLU": _solve,
    "MPSMatrixSolveTriangular": _solve_triangular,
    "MPSNDArrayMatrixMultiplication": _multiply_arrays,
}
