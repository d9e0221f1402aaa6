from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.sim.graph.casts import cast, filled

INTEGERS = [
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]


@settings(deadline=None)
@given(st.floats(width=32), st.sampled_from(INTEGERS))
def test_floats_are_truncated_and_saturate(number: float, dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    exact = 0 if math.isnan(number) else number
    truth = min(max(exact, limits.min), limits.max)
    assert cast(torch.tensor([number]), dtype).item() == int(truth)


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(INTEGERS))
def test_integers_keep_their_low_bits(number: int, dtype: torch.dtype) -> None:
    low = number % 2 ** (8 * dtype.itemsize)
    signed = torch.iinfo(dtype).min < 0 and low >> (8 * dtype.itemsize - 1)
    expected = low - 2 ** (8 * dtype.itemsize) if signed else low
    assert cast(torch.tensor([number]), dtype).item() == expected


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_round_to_the_nearest_half(number: float) -> None:
    found = cast(torch.tensor([number]), torch.float16).item()
    try:
        assert found == struct.unpack("<e", struct.pack("<e", number))[0]
    except OverflowError:
        assert found == math.copysign(math.inf, number)


@pytest.mark.parametrize("number", [0.0, -0.0, 1e-30, math.nan, -2.0])
def test_truth_is_what_differs_from_zero(number: float) -> None:
    assert cast(torch.tensor([number]), torch.bool).item() == (number != 0)
    assert cast(torch.tensor([number != 0]), torch.float32).item() == float(number != 0)


def test_complex_numbers_lose_their_imaginary_part() -> None:
    assert cast(torch.tensor([300 + 4j]), torch.uint8).tolist() == [255]
    assert cast(torch.tensor([2.0]), torch.complex64).tolist() == [2 + 0j]


def test_filled() -> None:
    assert filled((2,), -1.0, torch.uint8).tolist() == [0, 0]
    assert filled((), 2.0**32 - 16, torch.int32).item() == -16
    assert filled((1, 2), 2**53, torch.int64).tolist() == [[2**53] * 2]
    assert filled((), 1 + 1j, torch.complex64).item() == 1 + 1j
