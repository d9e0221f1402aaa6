"""Nearest values are those of double arithmetic; the ends lie as many steps away as allowed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from scanner.sim.shaders.compiler import Options
from scanner.sim.shaders.functions.interface import Direction, directions
from scanner.sim.shaders.functions.table import classify
from tests.sim.shaders.air import Array, apply

REFERENCE = {
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "cos": np.cos, "cosh": np.cosh,
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10.0**x, "log": np.log, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
    "acosh": np.arccosh, "asinh": np.arcsinh, "atanh": np.arctanh,
}  # fmt: skip


def steps(got: Array, reference: Array) -> Array:
    """Floats between two arrays of the same sign, downwards negative for positive values."""
    return got.view(np.int32).astype(np.int64) - reference.view(np.int32)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_nearest_is_the_rounded_double(runtime: Path, name: str) -> None:
    x = np.linspace(1.01, 3, 100) if name == "acosh" else np.linspace(0.05, 0.95, 100)
    given = x.astype(np.float32)
    expected = REFERENCE[name](given.astype(np.float64)).astype(np.float32)
    got = apply(runtime, f"air.{name}.f32", ("float", "float"), [given], np.float32)
    assert np.abs(steps(got, expected)).max() <= 1


@pytest.mark.parametrize(
    ("name", "ulps"), [("exp", 4), ("tan", 6), ("atan", 5), ("log2", 4), ("fast_exp", 4)]
)
@pytest.mark.parametrize(("direction", "sign"), [("up", 1), ("down", -1)])
def test_ends_of_the_error_are_the_specification_s(
    runtime: Path, name: str, ulps: int, direction: Direction, sign: int
) -> None:
    """fast_exp of 0.5 … 0.9 may err by 3 + floor(2x) = 4 units."""
    given = np.linspace(1.5, 1.9, 9, dtype=np.float32) if name == "log2" else (
        np.linspace(0.5, 0.9, 9, dtype=np.float32)
    )  # fmt: skip
    types, full = ("float", "float"), f"air.{name}.f32"
    nearest = apply(runtime, full, types, [given], np.float32)
    moved = apply(runtime, full, types, [given], np.float32, Options(direction=direction))
    assert (steps(moved, nearest) == sign * ulps).all()


def test_negative_results_move_the_same_way(runtime: Path) -> None:
    given = np.array([0.5], np.float32)
    options = Options(direction="up")
    nearest = apply(runtime, "air.log.f32", ("float", "float"), [given], np.float32)
    moved = apply(runtime, "air.log.f32", ("float", "float"), [given], np.float32, options)
    assert moved[0] > nearest[0]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_zero_infinity_and_nan_do_not_move(runtime: Path, direction: Direction) -> None:
    given = np.array([0.0, math.inf, -1.0], np.float32)
    options = Options(direction=direction)
    got = apply(runtime, "air.log.f32", ("float", "float"), [given], np.float32, options)
    np.testing.assert_array_equal(got, np.array([-np.inf, np.inf, np.nan], np.float32))
    sine = apply(runtime, "air.sin.f32", ("float", "float"), [given[:1]], np.float32, options)
    assert sine[0] == 0


def test_nothing_leaves_the_range_of_the_function(runtime: Path) -> None:
    given = np.array([math.pi / 2], np.float32)
    options = Options(direction="up")
    got = apply(runtime, "air.sin.f32", ("float", "float"), [given], np.float32, options)
    assert got[0] == 1


def test_sinpi_is_exact_at_halves(runtime: Path) -> None:
    given = np.array([0.5, 1.0, 1.5, 2.0, -0.5, 2.0**23 + 1], np.float32)
    got = apply(runtime, "air.sinpi.f32", ("float", "float"), [given], np.float32)
    assert got.tolist() == [1, 0, -1, 0, -1, 0]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [(2, 10, 1024), (-2, 3, -8), (-2, 0.5, math.nan), (0, 0, 1), (4, -0.5, 0.5)],
)
def test_pow(runtime: Path, x: float, y: float, expected: float) -> None:
    given = [np.array([v], np.float32) for v in (x, y)]
    got = apply(runtime, "air.pow.f32", ("float",) * 3, given, np.float32)
    np.testing.assert_array_equal(got, np.array([expected], np.float32))


def test_half_is_rounded_once(runtime: Path) -> None:
    given = np.linspace(-4, 4, 97).astype(np.float16)
    got = apply(runtime, "air.exp.f16", ("half", "half"), [given], np.float16)
    expected = np.exp(given.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(got, expected)


def test_every_approximate_family_has_a_bound() -> None:
    for name in ("air.exp.f32", "air.pow.f32", "air.fast_tanh.f32", "air.sin.f16"):
        family = classify(name)
        assert family is not None
        assert family.kind == "approximate"
        assert family.bound is not None
        assert 1 <= family.bound.ulps <= 16


def test_the_last_bit_chooses_the_direction(runtime: Path) -> None:
    """`odd` and `even` are each other's opposite, and both directions occur."""
    given = np.linspace(0.1, 0.9, 64, dtype=np.float32)
    types, full = ("float", "float"), "air.exp.f32"
    nearest = apply(runtime, full, types, [given], np.float32)
    odd = steps(apply(runtime, full, types, [given], np.float32, Options(direction="odd")), nearest)
    even = steps(
        apply(runtime, full, types, [given], np.float32, Options(direction="even")), nearest
    )
    last = nearest.view(np.int32) & 1
    assert (odd == np.where(last, 4, -4)).all()
    assert (even == -odd).all()
    assert 0 < last.sum() < len(last)


@pytest.mark.parametrize(("direction", "sign"), [("up", 1), ("down", -1)])
def test_fast_tanh_loses_small_results(runtime: Path, direction: Direction, sign: int) -> None:
    """exp(2x) - 1 next to x = 0 keeps no more than 2^-22."""
    given = np.array([1e-9, 0.0, -1e-9, 20.0], np.float32)
    options = Options(direction=direction)
    types = ("float", "float")
    got = apply(runtime, "air.fast_tanh.f32", types, [given], np.float32, options)
    assert got[1] == 0
    np.testing.assert_allclose(got[[0, 2]], sign * 2.0**-22, rtol=0.01)
    assert got[3] <= 1


def test_worst_looks_in_all_directions() -> None:
    assert directions("nearest") == ("nearest",)
    assert set(directions("worst")) == set(get_args(Direction)) - {"nearest"}
