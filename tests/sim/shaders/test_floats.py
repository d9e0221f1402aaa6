"""Expected values: IEEE 754 and the wording of the Metal specification, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sim.shaders.air import GRID, apply, buffer, module, run

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("air.fmax.f32", [1, NAN, -0.5], [2, 3, NAN], [2, 3, -0.5]),
        ("air.fmin.f32", [1, NAN, -0.5], [2, 3, NAN], [1, 3, -0.5]),
        ("air.copysign.f32", [1, -2, 3], [-0.0, 5, -1], [-1, 2, -3]),
        ("air.fmod.f32", [5.5, -5.5, INF], [2, 2, 2], [1.5, -1.5, NAN]),
        ("air.nextafter.f32", [1, 1, 0], [2, 0, 0], [1 + 2**-23, 1 - 2**-24, 0]),
    ],
)
def test_two_floats(
    runtime: Path, name: str, a: list[float], b: list[float], expected: list[float]
) -> None:
    inputs = [np.array(a, np.float32), np.array(b, np.float32)]
    got = apply(runtime, name, ("float", "float", "float"), inputs, np.float32)
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("air.fabs.f32", [-1.5, -INF, 0], [1.5, INF, 0]),
        ("air.rint.f32", [0.5, 1.5, -2.5], [0, 2, -2]),
        ("air.round.f32", [0.5, 1.5, -2.5], [1, 2, -3]),
        ("air.trunc.f32", [1.9, -1.9, INF], [1, -1, INF]),
        ("air.floor.f32", [1.5, -1.5, -0.0], [1, -2, 0]),
        ("air.ceil.f32", [1.5, -1.5, 0.2], [2, -1, 1]),
        ("air.fract.f32", [1.25, -0.25, INF], [0.25, 0.75, 0]),
        ("air.sign.f32", [-3, 0, NAN], [-1, 0, 0]),
        ("air.saturate.f32", [-1, 0.5, 7], [0, 0.5, 1]),
        ("air.rsqrt.f32", [4, 0.25, 0], [0.5, 2, INF]),
        ("air.sqrt.f32", [4, -1, INF], [2, NAN, INF]),
        ("air.precise_sqrt.f32", [9, 2.25, 0], [3, 1.5, 0]),
    ],
)
def test_one_float(runtime: Path, name: str, given: list[float], expected: list[float]) -> None:
    got = apply(runtime, name, ("float", "float"), [np.array(given, np.float32)], np.float32)
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


def test_fract_of_a_tiny_negative_stays_below_one(runtime: Path) -> None:
    """x - floor(x) rounds to 1, which fract never returns."""
    got = apply(
        runtime, "air.fract.f32", ("float", "float"), [np.array([-1e-9], np.float32)], np.float32
    )
    assert got[0] == np.float32(1 - 2**-24)


def test_clamp_of_nan_is_the_lower_bound(runtime: Path) -> None:
    given = [np.array(g, np.float32) for g in ([NAN, 5, -5], [0, 0, 0], [1, 1, 1])]
    got = apply(runtime, "air.clamp.f32", ("float",) * 4, given, np.float32)
    assert got.tolist() == [0, 1, 0]


def test_fma_rounds_once(runtime: Path) -> None:
    """(1 + 2**-12)**2 - 1 keeps the 2**-24 that a rounded product loses."""
    x = 1 + 2.0**-12
    given = [np.array([v], np.float32) for v in (x, x, -1.0)]
    got = apply(runtime, "air.fma.f32", ("float",) * 4, given, np.float32)
    assert got[0] == 2.0**-11 + 2.0**-24


def test_half_fma_rounds_once(runtime: Path) -> None:
    """1025*1025/2**20 + 2**-24 lies just above a tie of half, which float arithmetic loses."""
    a, c = np.float16(1025 / 1024), np.float16(2.0**-24)
    exact = (1025 * 1025) / 2**20 + 2.0**-24
    given = [np.array([v], np.float16) for v in (a, a, c)]
    got = apply(runtime, "air.fma.f16", ("half",) * 4, given, np.float16)
    steps = [v for v in (1.001953125, 1.0029296875) if abs(v - exact) <= 2**-11]
    assert float(got[0]) == min(steps, key=lambda v: abs(v - exact))


@pytest.mark.parametrize(
    ("x", "towards", "expected"),
    [(1.0, 2.0, 1 + 2**-10), (0.0, 1.0, 2.0**-24), (0.0, -1.0, -(2.0**-24)),
     (-1.0, 0.0, -1 + 2**-11), (65504.0, INF, INF)],
)  # fmt: skip
def test_half_nextafter(runtime: Path, x: float, towards: float, expected: float) -> None:
    given = [np.array([v], np.float16) for v in (x, towards)]
    got = apply(runtime, "air.nextafter.f16", ("half",) * 3, given, np.float16)
    assert float(got[0]) == expected


def test_ldexp_scales_exactly(runtime: Path) -> None:
    given = [np.array([0.75, 1.0], np.float32), np.array([3, -200], np.int32)]
    got = apply(runtime, "air.ldexp.f32", ("float", "float", "i32"), given, np.float32)
    assert got.tolist() == [6.0, 0.0]


def test_dot(runtime: Path) -> None:
    given = [np.array([[1, 2, 3, 4]], np.float32), np.array([[5, 6, 7, 8]], np.float32)]
    result = np.zeros(1, np.float32)
    body = (
        "  %x = load <4 x float>, ptr addrspace(1) %a, align 4\n"
        "  %y = load <4 x float>, ptr addrspace(1) %b, align 4\n"
        "  %r = call float @air.dot.v4f32(<4 x float> %x, <4 x float> %y)\n"
        "  store float %r, ptr addrspace(1) %out\n  ret void"
    )
    parameters = [buffer("out", 0), buffer("a", 1), buffer("b", 2), GRID]
    assembly = module(
        "kernel", parameters, body, declares=["float @air.dot.v4f32(<4 x float>, <4 x float>)"]
    )
    assert run(assembly, runtime, {0: result, 1: given[0], 2: given[1]}, 1).outcome == "ran"
    assert result[0] == 70


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), 2.0**-130), (("air.compile.denorms_disable",), 0.0)],
)
def test_denormals_are_flushed_where_the_module_says_so(
    runtime: Path, options: tuple[str, ...], expected: float
) -> None:
    given, result = np.array([2.0**-120], np.float32), np.ones(1, np.float32)
    body = (
        "  %x = load float, ptr addrspace(1) %a\n  %r = fmul float %x, 0x3F50000000000000\n"
        "  store float %r, ptr addrspace(1) %out\n  ret void"
    )
    assembly = module("kernel", [buffer("out", 0), buffer("a", 1), GRID], body, options=options)
    run(assembly, runtime, {0: result, 1: given}, 1)
    assert result[0] == np.float32(expected)
