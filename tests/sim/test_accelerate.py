from __future__ import annotations

import numpy as np
import pytest

from scanner.sim.machine.faults import Fault
from scanner.sim.osenv.accelerate import imports, is_fortran
from tests.sim.bench import Bench

pytest.importorskip("scipy")


def number(bench: Bench, value: int) -> int:
    return bench.put(value.to_bytes(4, "little", signed=True))


def test_names_of_fortran_routines() -> None:
    names = ("_ssyevd_", "_malloc", "__exit", "___muldc3", "_vm_page_size")
    assert [name for name in names if is_fortran(name)] == ["_ssyevd_"]


def test_eigenvalues_through_pointers(bench: Bench) -> None:
    """[[2, 1], [1, 2]] has the eigenvalues 1 and 3; three of eleven arguments are on the stack."""
    matrix = bench.put(np.array([[2, 1], [1, 2]], np.float32).tobytes())
    values, work, iwork = (bench.put(bytes(256)) for _ in range(3))
    info = number(bench, -1)
    used: list[str] = []
    arguments = [
        bench.text("N"),
        bench.text("U"),
        number(bench, 2),
        matrix,
        number(bench, 2),
        values,
        work,
        number(bench, 64),
        iwork,
        number(bench, 64),
        info,
    ]
    bench.serve(imports(["_ssyevd_"], used.append)["_ssyevd_"], *arguments)
    assert np.frombuffer(bench.memory.read(values, 8), np.float32).tolist() == pytest.approx([1, 3])
    assert bench.memory.u32(info) == 0
    assert used == ["ssyevd"]


def test_routines_that_return_a_number(bench: Bench) -> None:
    vector = bench.put(np.array([1, 2, 3], np.float64).tobytes())
    one, three = number(bench, 1), number(bench, 3)
    bench.serve(imports(["_ddot_"], [].append)["_ddot_"], three, vector, one, vector, one)
    assert bench.cpu.d(0) == 14.0


def test_complex_dot_products_are_stored(bench: Bench) -> None:
    vector = bench.put(np.array([1 + 1j, 0, 2j], np.complex64).tobytes())
    out = bench.words(0)
    handler = imports([], [].append)["_cblas_cdotc_sub"]
    bench.serve(handler, 2, vector, 2, vector, 2, out)
    assert np.frombuffer(bench.memory.read(out, 8), np.complex64)[0] == 6


def test_an_unknown_routine_is_named(bench: Bench) -> None:
    with pytest.raises(Fault, match="snothing_ of Accelerate is not imitated"):
        bench.serve(imports(["_snothing_"], [].append)["_snothing_"])
