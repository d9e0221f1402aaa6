"""8x8 matrices spread over a simdgroup; expected values by numpy on whole numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sim.shaders.air import GRID, buffer, module, run


@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_product(runtime: Path, transposed: bool) -> None:
    """C = A·B + C of 8x8, A with a row length of 9 and its origin at column 1."""
    m = "<64 x float>"
    load = f"{m} @air.simdgroup_matrix_8x8_load.v64f32.p1f32"
    flag = "true" if transposed else "false"
    body = (
        f"  %x = call {load}(ptr addrspace(1) %a, i64 9, <2 x i64> <i64 1, i64 0>, i1 {flag})\n"
        f"  %y = call {load}(ptr addrspace(1) %b, i64 8, <2 x i64> zeroinitializer, i1 false)\n"
        f"  %z = call {load}(ptr addrspace(1) %c, i64 8, <2 x i64> zeroinitializer, i1 false)\n"
        f"  %r = call {m} @air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32"
        f"({m} %x, {m} %y, {m} %z)\n"
        f"  call void @air.simdgroup_matrix_8x8_store.v64f32.p1f32({m} %r, ptr addrspace(1) %c, "
        "i64 8, <2 x i64> zeroinitializer, i1 false)\n  ret void"
    )
    declares = [
        f"{load}(ptr addrspace(1), i64, <2 x i64>, i1)",
        f"{m} @air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32"
        f"({m}, {m}, {m})",
        f"void @air.simdgroup_matrix_8x8_store.v64f32.p1f32({m}, ptr addrspace(1), i64, "
        "<2 x i64>, i1)",
    ]
    parameters = [buffer("a", 0), buffer("b", 1), buffer("c", 2), GRID]
    generator = np.random.default_rng(0)
    a = generator.integers(-4, 5, (9, 9)).astype(np.float32)
    b, c = (generator.integers(-4, 5, (8, 8)).astype(np.float32) for _ in range(2))
    left = a[:8, 1:].T if transposed else a[:8, 1:]
    expected = left @ b + c
    done = run(module("kernel", parameters, body, declares=declares), runtime,
               {0: a, 1: b, 2: c}, 32, 32)  # fmt: skip
    assert (done.outcome, done.violations) == ("ran", [])
    np.testing.assert_array_equal(c, expected)


def test_diagonal_matrix(runtime: Path) -> None:
    m = "<64 x float>"
    body = (
        f"  %d = call {m} @air.simdgroup_matrix_8x8_init_diag.v64f32.f32(float 3.0)\n"
        f"  call void @air.simdgroup_matrix_8x8_store.v64f32.p1f32({m} %d, ptr addrspace(1) %out, "
        "<2 x i64> <i64 8, i64 8>, <2 x i64> <i64 1, i64 8>, <2 x i64> zeroinitializer)\n  ret void"
    )
    declares = [
        f"{m} @air.simdgroup_matrix_8x8_init_diag.v64f32.f32(float)",
        f"void @air.simdgroup_matrix_8x8_store.v64f32.p1f32({m}, ptr addrspace(1), <2 x i64>, "
        "<2 x i64>, <2 x i64>)",
    ]
    out = np.ones((8, 8), np.float32)
    run(module("kernel", [buffer("out", 0), GRID], body, declares=declares), runtime, {0: out}, 32)
    np.testing.assert_array_equal(out, 3 * np.eye(8, dtype=np.float32))
