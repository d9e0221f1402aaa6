"""Expected values by two's complement arithmetic, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sim.shaders.air import apply

LEAST = -(2**31)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("air.max.s.i32", ([-1, 5, LEAST], [1, 5, 0]), [1, 5, 0]),
        ("air.max.u.i32", ([-1, 5, LEAST], [1, 5, 0]), [-1, 5, LEAST]),
        ("air.min.s.i32", ([-1, 5, LEAST], [1, 5, 0]), [-1, 5, LEAST]),
        ("air.min.u.i32", ([-1, 5, LEAST], [1, 5, 0]), [1, 5, 0]),
        ("air.mul_hi.s.i32", ([2**30, -(2**30), -1], [8, 8, -1]), [2, -2, 0]),
        ("air.mul_hi.u.i32", ([2**30, -1, -1], [8, 2, -1]), [2, 1, -2]),
        ("air.abs_diff.s.i32", ([1, -3, 7], [4, 4, 7]), [3, 7, 0]),
        ("air.add_sat.s.i32", ([2**31 - 1, LEAST, 1], [1, -1, 2]), [2**31 - 1, LEAST, 3]),
        ("air.sub_sat.u.i32", ([1, 5, 0], [2, 3, 0]), [0, 2, 0]),
    ],
)
def test_two_operands(
    runtime: Path, name: str, given: tuple[list[int], list[int]], expected: list[int]
) -> None:
    inputs = [np.array(g, np.int32) for g in given]
    got = apply(runtime, name, ("i32", "i32", "i32"), inputs, np.int32)
    assert got.tolist() == expected


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("air.abs.s.i32", [-3, 3, LEAST], [3, 3, LEAST]),
        ("air.abs.u.i32", [-3, 3, LEAST], [-3, 3, LEAST]),
        ("air.popcount.i32", [0, -1, 5], [0, 32, 2]),
        ("air.reverse_bits.i32", [1, 2, 0], [LEAST, 2**30, 0]),
    ],
)
def test_one_operand(runtime: Path, name: str, given: list[int], expected: list[int]) -> None:
    got = apply(runtime, name, ("i32", "i32"), [np.array(given, np.int32)], np.int32)
    assert got.tolist() == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("air.clz.i16", [16, 15, 0]), ("air.ctz.i16", [16, 0, 15])]
)
def test_counting_zeros_of_zero_gives_the_width(
    runtime: Path, name: str, expected: list[int]
) -> None:
    """The flag (1: zero is undefined) is not heeded."""
    given = [np.array([0, 1, 0x8000], np.uint16), np.array([1, 1, 1], np.uint8)]
    assert apply(runtime, name, ("i16", "i16", "i1"), given, np.uint16).tolist() == expected


def test_clamp_takes_the_upper_bound_last(runtime: Path) -> None:
    given = [np.array(g, np.int64) for g in ([5, -5, 2, 1], [0, 0, 0, 9], [3, 3, 3, 4])]
    got = apply(runtime, "air.clamp.s.i64", ("i64", "i64", "i64", "i64"), given, np.int64)
    assert got.tolist() == [3, 0, 2, 4]


def test_vectors_of_integers(runtime: Path) -> None:
    given = [np.array([[1, -1]], np.int32), np.array([[0, 5]], np.int32)]
    types = ("<2 x i32>", "<2 x i32>", "<2 x i32>")
    assert apply(runtime, "air.max.s.v2i32", types, given, np.int32).tolist() == [[1, 5]]
