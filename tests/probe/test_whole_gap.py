"""How far apart two results are, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scanner.probe.accumulate import gap_of, worst_gap
from scanner.probe.fingerprint import fingerprint
from scanner.probe.standards import CONTRACTION, RECURSION

EPS = 2.0**-23


def gap(mine: Tensor, theirs: Tensor, right: Tensor | None = None) -> tuple[float, float, bool]:
    found = gap_of(
        fingerprint(mine), fingerprint(theirs), None if right is None else fingerprint(right)
    )
    return found.error, found.own, found.past


def test_errors_are_relative_to_the_reference() -> None:
    right = torch.tensor([3.0, 4.0], dtype=torch.float64)  # root mean square √12.5
    error, own, past = gap(torch.tensor([3.0, 5.0]), torch.tensor([3.0, 4.0]), right)
    assert error == pytest.approx(math.sqrt(0.5) / math.sqrt(12.5))
    assert (own, past) == (0.0, True)


def test_three_times_the_cpus_own_error_and_a_floor_are_allowed() -> None:
    right = torch.ones(4, dtype=torch.float64)
    cpu = torch.full((4,), 1.001)
    assert not gap(torch.full((4,), 1.0029), cpu, right)[2]
    assert gap(torch.full((4,), 1.0032), cpu, right)[2]
    assert not gap(torch.full((4,), 1 + 99 * EPS), torch.ones(4), right)[2]
    assert gap(torch.full((4,), 1 + 102 * EPS), torch.ones(4), right)[2]


def test_what_is_left_of_terms_that_cancel_is_noise_on_every_device() -> None:
    right = torch.tensor([1e-16, -1e-16], dtype=torch.float64)
    cpu = torch.tensor([1e-9, 2e-9])
    assert not gap(torch.tensor([-4e-8, 1e-7]), cpu, right)[2]
    assert gap(torch.tensor([-4e-5, 1e-4]), cpu, right)[2]


def test_a_recursion_may_err_more_than_a_contraction() -> None:
    prints = [{"0": fingerprint(torch.full((4,), each))} for each in (1 + 500 * EPS, 1.0, 1.0)]
    assert worst_gap(*prints, CONTRACTION).past
    assert not worst_gap(*prints, RECURSION).past


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        ([1.0, math.nan, math.inf], "infinity or NaN in 1 element"),
        ([1.0, 2.0, 3.0], "no infinity or NaN in 1 element that should have it"),
    ],
)
def test_what_is_not_finite_on_one_side_only_is_past(mine: list[float], message: str) -> None:
    found = gap_of(
        fingerprint(torch.tensor(mine)), fingerprint(torch.tensor([1.0, math.inf, 3.0])), None
    )
    assert (found.past, found.message) == (True, message)


def test_another_shape_or_dtype_is_past() -> None:
    one, other = fingerprint(torch.ones(2)), fingerprint(torch.ones(2, dtype=torch.float64))
    found = gap_of(one, other, None)
    assert (found.past, found.message) == (True, "it gives float32[2], the CPU float64[2]")


def test_one_whole_number_in_a_hundred_may_differ() -> None:
    numbers = torch.arange(200)
    few, many = numbers.clone(), numbers.clone()
    few[:2], many[:3] = 7, 7
    assert not gap(few, numbers, numbers)[2]
    assert gap(many, numbers, numbers)[2]


def test_beside_nothing_but_zeros_an_error_counts_as_it_is() -> None:
    zeros = torch.zeros(3)
    assert not gap(torch.full((3,), 1e-6), zeros)[2]
    assert gap(torch.full((3,), 1e-3), zeros)[2]


@settings(deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_nothing_is_off_from_itself(values: list[float]) -> None:
    tensor = torch.tensor(values)
    assert gap(tensor, tensor, tensor.double()) == (0.0, pytest.approx(0.0), False)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 200_000))
def test_first_and_last_element_are_always_kept(size: int) -> None:
    kept = fingerprint(torch.arange(size, dtype=torch.float64))
    assert (float(kept.samples[0]), float(kept.samples[-1])) == (0.0, size - 1.0)
    assert kept.samples.numel() <= 1 << 16
