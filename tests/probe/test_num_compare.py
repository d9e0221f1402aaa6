"""The raised-reference rule on numbers whose verdicts follow from it by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from scanner.probe.compare import Comparison, Context, compare, compare_exactly
from scanner.probe.gain import gain_error
from scanner.probe.standards import CONTRACTION, POINTWISE, STEPPED, Standard, unit
from tests.probe.num_support import biased, noisy

HALF = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32, *HALF)


def reference(count: int = 4096, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, generator=generator, dtype=torch.float64)


def judged(device: Tensor, right: Tensor, standard: Standard = CONTRACTION) -> Comparison:
    """The CPU rounds the right values; the device is as given."""
    return compare("0", device, right.to(device.dtype), right, standard)


@pytest.mark.parametrize("standard", [POINTWISE, CONTRACTION], ids=lambda s: s.kind)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64])
def test_three_units_of_noise_pass(dtype: torch.dtype, standard: Standard) -> None:
    for count in (1, 3, 12, 100, 4096):
        right = reference(count, seed=count)
        right = torch.complex(right, right.flip(0)) if dtype.is_complex else right
        assert judged(noisy(right.to(dtype)), right, standard).result.passed, count


@pytest.mark.parametrize("standard", [POINTWISE, CONTRACTION], ids=lambda s: s.kind)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64])
def test_one_per_cent_too_large_fails(dtype: torch.dtype, standard: Standard) -> None:
    right = reference(64)
    right = torch.complex(right, right.flip(0)) if dtype.is_complex else right
    result = judged(biased(right.to(dtype)), right, standard).result
    assert not result.passed
    assert result.bias == pytest.approx(0.01, abs=2e-3)


def test_one_per_cent_fails_in_any_single_element_wide_enough_to_show_it() -> None:
    right = torch.tensor([1.5], dtype=torch.float64)
    for dtype in (torch.float32, torch.float16):
        assert not judged((right * 1.01).to(dtype), right).result.passed
    # In bfloat16 it is two units: noise of that size passes, so one element cannot tell.
    assert judged((right * 1.01).to(torch.bfloat16), right).result.passed


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_lost_tile_fails(dtype: torch.dtype) -> None:
    right = reference(256)
    device = right.to(dtype)
    device[-16:] = 0
    result = judged(device, right).result
    assert not result.passed
    assert result.count >= 10
    assert result.worst is not None
    assert result.worst.device == 0.0
    assert result.worst.index[0] >= 240


def test_the_worst_element_and_the_smallest_tolerance_are_told() -> None:
    right = torch.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=torch.float64)
    device = right.float()
    device[1, 0] = 5.0
    result = judged(device, right).result
    assert (result.count, result.elements, result.share) == (1, 4, 0.25)
    assert result.worst is not None
    assert (result.worst.index, result.worst.device) == ((1, 0), 5.0)
    assert (result.worst.reference, result.worst.cpu) == (4.0, 4.0)
    assert result.max_absolute == 1.0
    assert result.max_relative == 0.25
    assert result.min_tolerance == 1.0 / 8.0
    # S = √(85/4); allowed is (16·4 + 84·S)·ε, since the CPU makes no error here.
    allowed = (16 * 4 + 84 * math.sqrt(85 / 4)) * 2.0**-23
    assert result.error_factor == pytest.approx(1 / allowed, rel=1e-6)


def test_a_device_may_err_three_times_as_much_as_the_cpu() -> None:
    right = torch.full((100,), 1.0, dtype=torch.float64) * torch.linspace(1, 2, 100)
    cpu = (right + 1e-2).float()
    inside, outside = (right - 2.9e-2).float(), (right - 3.2e-2).float()
    assert compare("0", inside, cpu, right, POINTWISE).result.passed
    assert not compare("0", outside, cpu, right, POINTWISE).result.passed


def test_a_cpu_that_computes_something_else_is_no_measure() -> None:
    right = reference(100)
    cpu = (right * -20).float()
    assert compare("0", right.float(), cpu, right, CONTRACTION).result.passed
    assert not compare("0", (right * 1.01).float(), cpu, right, CONTRACTION).result.passed


def test_noise_that_is_left_of_inputs_that_cancel_is_no_result() -> None:
    right = torch.tensor([7e-15, -3e-15], dtype=torch.float64)
    cpu, device = torch.tensor([-7e-6, 1e-6]), torch.tensor([0.0, 2e-6])
    assert compare("0", device, cpu, right, CONTRACTION).result.passed
    assert not compare("0", device + 1e-3, cpu, right, CONTRACTION).result.passed
    # Had the inputs been that small, the CPU would be the one that is wrong.
    small = Context(magnitude=lambda: 1e-6)
    assert not compare("0", device, cpu, right, CONTRACTION, small).result.passed


def test_agreeing_with_the_cpu_to_the_bit_is_right() -> None:
    right = reference(100)
    cpu = (right * -20).float()
    assert compare("0", cpu.clone(), cpu, right, CONTRACTION).result.passed


def test_ill_condition_excuses_what_a_rounding_of_the_inputs_does() -> None:
    right = reference(100)
    device = (right + 1e-3).float()
    moved = torch.full((100,), 1e-3, dtype=torch.float64)
    args = ("0", device, right.float(), right, CONTRACTION)
    assert not compare(*args).result.passed
    assert compare(*args, Context(lambda: moved)).result.passed
    assert not compare(*args, Context(lambda: moved / 10)).result.passed
    assert not compare(
        "0", right.float() * 0, right.float(), right, CONTRACTION, Context(lambda: moved * 99)
    ).result.passed


def test_a_stepped_op_may_take_the_other_side_only_at_a_step() -> None:
    right = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    device = torch.tensor([1.0, 1.0, 3.0])
    args = ("0", device, right.float(), right, STEPPED)
    assert compare(*args, Context(lambda: torch.tensor([0.0, 1.0, 0.0]))).result.passed
    assert not compare(*args, Context(lambda: torch.tensor([1.0, 0.0, 0.0]))).result.passed


def test_conditioning_is_not_computed_for_what_passes() -> None:
    def never() -> Tensor:
        raise AssertionError("not needed")

    right = reference(10)
    assert compare(
        "0", right.float(), right.float(), right, CONTRACTION, Context(never)
    ).result.passed


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_nan_fails_and_is_named(dtype: torch.dtype) -> None:
    right = reference(64)
    device = right.to(dtype)
    device[5] = torch.nan
    comparison = judged(device, right)
    assert comparison.faults == (("nan-appears", 1),)
    assert comparison.result.worst is not None
    assert comparison.result.worst.index == (5,)
    assert comparison.result.worst.device == "nan"


@pytest.mark.parametrize("lost", [torch.nan, torch.inf])
def test_a_vanished_nan_or_infinity_fails(lost: float) -> None:
    right = reference(64)
    right[7] = lost
    device = right.float()
    assert judged(device, right).result.passed
    device[7] = 0.0
    assert judged(device, right).faults == (("nan-vanishes", 1),)


def test_infinities_of_the_wrong_sign_fail() -> None:
    right = torch.tensor([1.0, math.inf], dtype=torch.float64)
    assert not judged(torch.tensor([1.0, -math.inf]), right).result.passed


def test_overflow_may_happen_where_the_cpu_or_the_rounded_result_overflows() -> None:
    right = torch.tensor([1e5, 6e4, 1.0], dtype=torch.float64)
    for cpu in ([math.inf, 6e4, 1.0], [math.inf, math.inf, 1.0]):
        theirs = torch.tensor(cpu, dtype=torch.float16)
        rounded = right.to(torch.float16)
        assert compare("0", rounded, theirs, right, POINTWISE).result.passed
        assert compare("0", theirs.clone(), theirs, right, POINTWISE).result.passed
    early = torch.tensor([math.inf, math.inf, 1.0], dtype=torch.float16)
    assert not compare("0", early, right.to(torch.float16), right, POINTWISE).result.passed


def test_infinity_may_become_nan_only_where_sums_spread_it() -> None:
    right = torch.tensor([math.inf, 1.0], dtype=torch.float64)
    device = torch.tensor([math.nan, math.nan])
    args = ("0", device, right.float(), right, CONTRACTION)
    assert not compare(*args).result.passed
    assert compare(*args, Context(spreads=True)).result.passed


def test_subnormal_results_may_be_flushed() -> None:
    right = torch.tensor([1e-40, 1e-3], dtype=torch.float64)
    assert judged(torch.tensor([0.0, 1e-3]), right).result.passed
    assert not judged(torch.tensor([0.0, 0.0]), right).result.passed


def test_without_a_wider_reference_the_floors_decide() -> None:
    cpu = reference(100)
    near, far = cpu * (1 + 100 * unit(torch.float64)), cpu * (1 + 1e-9)
    assert compare("0", near, cpu, None, CONTRACTION).result.passed
    result = compare("0", far, cpu, None, CONTRACTION).result
    assert not result.passed
    assert not result.raised


def test_an_empty_output_is_right() -> None:
    empty = torch.empty(0)
    assert compare("0", empty, empty, empty.double(), CONTRACTION).result.passed


def test_exact_outputs_differ_in_single_elements() -> None:
    comparison = compare_exactly("0", torch.tensor([1, 2, 9]), torch.tensor([1, 2, 3]))
    result = comparison.result
    assert (result.count, result.max_absolute, result.error_factor) == (1, 6.0, "inf")
    assert result.worst is not None
    assert (result.worst.index, result.worst.device, result.worst.cpu) == ((2,), 9.0, 3.0)


def test_exact_outputs_may_hold_nan_and_either_zero() -> None:
    ours, theirs = torch.tensor([math.nan, -0.0]), torch.tensor([math.nan, 0.0])
    assert compare_exactly("0", ours, theirs).result.passed
    assert not compare_exactly("0", torch.tensor([True]), torch.tensor([False])).result.passed


def test_a_gain_needs_enough_different_elements() -> None:
    right = reference(4096)
    for count, significant in ((4, False), (64, True)):
        part = right[:count]
        gain = gain_error(
            biased(part.to(torch.bfloat16)).double(), part, part.to(torch.bfloat16).double()
        )
        assert gain.significant is significant
    same = torch.full((4096,), 1.3, dtype=torch.float64)
    assert not gain_error(same * 1.01, same, same).significant


def test_truncation_to_bfloat16_is_no_gain_error() -> None:
    right = reference(4096).abs() + 0.1
    truncated = (right.float().view(torch.int32) & -65536).view(torch.float32).double()
    gain = gain_error(truncated, right, right.to(torch.bfloat16).double())
    assert gain.bias == pytest.approx(-2.8e-3, abs=4e-4)
    assert not gain.significant
