"""Expected values: the C rules of conversion, saturation and NaN → 0, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sim.shaders.air import Array, apply

INF = float("inf")
NAN = float("nan")


def bfloat(values: Array) -> Array:
    """float32 values as bfloat16 bits, exactly representable ones only."""
    bits = values.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    ("target", "kind", "dtype", "expected"),
    [
        ("s.i8", "i8", np.int8, [1, -1, 127, -128, 127, -128, 0, 0]),
        ("u.i8", "i8", np.uint8, [1, 0, 255, 0, 255, 0, 0, 0]),
        ("s.i16", "i16", np.int16, [1, -1, 300, -300, 32767, -32768, 0, 0]),
        ("u.i16", "i16", np.uint16, [1, 0, 300, 0, 65535, 0, 0, 0]),
        ("s.i32", "i32", np.int32, [1, -1, 300, -300, 2**31 - 1, -(2**31), 0, 0]),
        ("u.i32", "i32", np.uint32, [1, 0, 300, 0, 2**32 - 1, 0, 0, 0]),
        ("s.i64", "i64", np.int64, [1, -1, 300, -300, 2**63 - 1, -(2**63), 0, 0]),
        ("u.i64", "i64", np.uint64, [1, 0, 300, 0, 2**64 - 1, 0, 0, 0]),
        ("u.i1", "i1", np.uint8, [1, 1, 1, 1, 1, 1, 1, 0]),
    ],
)
def test_float_to_integer_truncates_and_saturates(
    runtime: Path, target: str, kind: str, dtype: type, expected: list[int]
) -> None:
    given = np.array([1.9, -1.9, 300, -300, INF, -INF, NAN, 0.0], np.float32)
    got = apply(runtime, f"air.convert.{target}.f.f32", (kind, "float"), [given], dtype)
    assert got.tolist() == expected


def test_half_and_bfloat_saturate_too(runtime: Path) -> None:
    half = np.array([1.5, -1.5, INF, NAN], np.float16)
    got = apply(runtime, "air.convert.s.i8.f.f16", ("i8", "half"), [half], np.int8)
    assert got.tolist() == [1, -1, 127, 0]
    given = bfloat(np.array([1.5, -1.5, INF, 2.0**70]))
    got = apply(runtime, "air.convert.s.i64.f.bf16", ("i64", "bfloat"), [given], np.int64)
    assert got.tolist() == [1, -1, 2**63 - 1, 2**63 - 1]


def test_float_to_bool_asks_for_nonzero(runtime: Path) -> None:
    given = np.array([0.5, -0.0, 0.0, NAN, 1e-30], np.float32)
    got = apply(runtime, "air.convert.u.i1.f.f32", ("i1", "float"), [given], np.uint8)
    assert got.tolist() == [1, 0, 0, 1, 1]


def test_float_to_bfloat_rounds_to_nearest_even(runtime: Path) -> None:
    """1 + 2**-8 lies between 1 and 1 + 2**-7 and goes to the even 1; 1 + 3*2**-8 goes up."""
    given = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, INF, 3.4e38], np.float32)
    got = apply(runtime, "air.convert.f.bf16.f.f32", ("bfloat", "float"), [given], np.uint16)
    assert got.tolist() == [0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7F80]


def test_nan_stays_nan_in_bfloat(runtime: Path) -> None:
    given = np.array([0x7F800001], np.uint32).view(np.float32)
    got = apply(runtime, "air.convert.f.bf16.f.f32", ("bfloat", "float"), [given], np.uint16)
    assert got[0] & 0x7F80 == 0x7F80
    assert got[0] & 0x007F


def test_half_reaches_bfloat_in_one_rounding(runtime: Path) -> None:
    given = np.array([1 + 2**-8, 1 + 3 * 2**-8, 65504], np.float16)
    got = apply(runtime, "air.convert.f.bf16.f.f16", ("bfloat", "half"), [given], np.uint16)
    assert got.tolist() == [0x3F80, 0x3F82, 0x4780]


def test_bfloat_to_half_overflows_and_underflows(runtime: Path) -> None:
    given = bfloat(np.array([1.0, 2.0**16, 2.0**-24, 2.0**-26]))
    got = apply(runtime, "air.convert.f.f16.f.bf16", ("half", "bfloat"), [given], np.float16)
    assert got.tolist() == [1.0, INF, 2.0**-24, 0.0]


@pytest.mark.parametrize(
    ("source", "kind", "dtype", "given", "expected"),
    [
        ("s.i8", "i8", np.int8, [-128, -1, 127], [-128, -1, 127]),
        ("u.i8", "i8", np.uint8, [0, 128, 255], [0, 128, 255]),
        ("s.i64", "i64", np.int64, [2**24 + 1, 2**24 + 3], [2**24, 2**24 + 4]),
        ("u.i64", "i64", np.uint64, [2**64 - 1, 2**63, 1], [2.0**64, 2.0**63, 1]),
        ("u.i1", "i1", np.uint8, [0, 1, 1], [0, 1, 1]),
    ],
)  # fmt: skip
def test_integer_to_float_rounds_to_nearest_even(
    runtime: Path, source: str, kind: str, dtype: type, given: list[int], expected: list[float]
) -> None:
    numbers = np.array(given, dtype)
    got = apply(runtime, f"air.convert.f.f32.{source}", ("float", kind), [numbers], np.float32)
    assert got.tolist() == expected


def test_integers_beyond_half_are_infinite(runtime: Path) -> None:
    given = np.array([65519, 65520, -70000, 2**40], np.int64)
    got = apply(runtime, "air.convert.f.f16.s.i64", ("half", "i64"), [given], np.float16)
    assert got.tolist() == [65504.0, INF, -INF, INF]


def test_widening_follows_the_sign_of_the_source(runtime: Path) -> None:
    given = np.array([-1, 1], np.int32)
    name = "air.convert.s.v2i64.u.v2i32"
    pair = np.array([[-1, 1]], np.int32)
    got = apply(runtime, name, ("<2 x i64>", "<2 x i32>"), [pair], np.int64)
    assert got.tolist() == [[2**32 - 1, 1]]
    name = "air.convert.s.i64.s.i32"
    assert apply(runtime, name, ("i64", "i32"), [given], np.int64).tolist() == [-1, 1]


def test_vectors_convert_by_element(runtime: Path) -> None:
    given = np.array([[1.5, -2.0, 65520.0, 0.1]], np.float32)
    name = "air.convert.f.v4f16.f.v4f32"
    got = apply(runtime, name, ("<4 x half>", "<4 x float>"), [given], np.float16)
    assert got[0, :3].tolist() == [1.5, -2.0, INF]
    assert got[0, 3] == np.float16(0.1)
