"""Adversarial values: what they are, where they apply, and what they bring to light."""

from __future__ import annotations

import pytest
import torch

from scanner.backends.cpu import CpuDevice
from scanner.probe.attempt import Attempt
from scanner.probe.execute import Options, run_case
from scanner.probe.expected import Expected
from scanner.probe.judge import judge
from scanner.probe.rebuild import Operands
from scanner.probe.schema import schema_of
from scanner.probe.standards import standard_of
from scanner.probe.stress import SIZES, resized, trials_for
from scanner.probe.trials import operands_for
from scanner.records import OpCall
from tests.probe.num_support import Accurate, Spoiled, call, in_place, kinds, mm, spec

STRESS = Options(stress=True, gradients=False)
EXP = call("aten::exp", spec(shape=(200,)))


def altered(configuration: OpCall, trial: str) -> torch.Tensor:
    return operands_for(schema_of(configuration.op), configuration, 0, trial).tensors[0]


def test_trials_hold_what_they_are_named_for() -> None:
    nan = altered(EXP, "one NaN")
    assert int(nan.isnan().sum()) == 1
    zeros = altered(EXP, "signed zeros")
    zeros = zeros[zeros == 0]
    assert bool(zeros.signbit().any())
    assert not bool(zeros.signbit().all())
    small = altered(EXP, "subnormal")
    assert float(small.abs().max()) < torch.finfo(torch.float32).smallest_normal
    assert float(small.abs().max()) > 0
    assert float(altered(EXP, "huge").abs().min()) > 1e38
    assert int(altered(EXP, "all equal").unique().numel()) == 1
    assert bool((altered(EXP, "whole-number boundaries") == 65537.0).any())
    mixed = altered(EXP, "zeros, subnormals, infinities, NaN")
    assert bool(mixed.isinf().any())
    assert bool(mixed.isnan().any())


def test_numbers_that_would_overflow_when_multiplied_are_left_to_pointwise_ops() -> None:
    huge = operands_for(schema_of("aten::mm"), mm("float16"), 0, "huge").tensors[0]
    assert 16 <= float(huge.abs().max()) <= 32


@pytest.mark.parametrize(
    "configuration",
    [
        call("aten::add.Tensor", spec(dtype="int64"), spec("other", dtype="int64")),
        call("aten::normal_", spec()),
        call("aten::empty_like", spec()),
    ],
    ids=lambda c: c.op,
)
def test_ops_without_floating_data_have_no_trials(configuration: OpCall) -> None:
    assert not list(trials_for(schema_of(configuration.op), configuration))


def test_positions_and_matrices_keep_their_values() -> None:
    sampler = call(
        "aten::grid_sampler_2d",
        spec("input", (1, 1, 4, 4)),
        spec("grid", (1, 2, 2, 2)),
        interpolation_mode=0,
        padding_mode=0,
        align_corners=False,
    )
    schema = schema_of(sampler.op)
    plain, huge = (operands_for(schema, sampler, 0, trial).tensors for trial in ("drawn", "huge"))
    assert not torch.equal(plain[0], huge[0])
    assert torch.equal(plain[1], huge[1])


def test_a_device_that_loses_nan_is_found_only_by_stress() -> None:
    loses = Spoiled(in_place(lambda x: x.nan_to_num_(0.0)))
    assert run_case(mm(), loses, Options(gradients=False)).status == "native"
    result = run_case(mm(), loses, STRESS)
    assert (result.status, result.trial) == ("nan", "one NaN")
    assert kinds(result) >= {"nan-vanishes"}
    assert result.trials == ("drawn", "one NaN")


@pytest.mark.parametrize("configuration", [EXP, mm(), mm("bfloat16")], ids=lambda c: c.op)
def test_right_devices_pass_all_trials(configuration: OpCall) -> None:
    for device in (CpuDevice(), Accurate({torch.bfloat16: torch.float32})):
        result = run_case(configuration, device, STRESS)
        assert result.status == "native", (result.trial, result.reason)
        assert len(result.trials) == 8


def test_a_device_may_take_subnormal_numbers_for_zero() -> None:
    class Flushing(CpuDevice):
        def call(self, op, args, kwargs):
            tiny = torch.finfo(torch.float32).smallest_normal
            flushed = [torch.where(a.abs() < tiny, a * 0, a) for a in args]
            return super().call(op, tuple(flushed), kwargs)

    scaled = call("aten::reciprocal", spec(shape=(50,)))
    assert run_case(scaled, Flushing(), STRESS).status == "native"


def test_nan_may_spread_through_sums_but_not_through_single_elements() -> None:
    spreads = Spoiled(in_place(lambda x: x.fill_(torch.nan) if bool(x.isnan().any()) else None))
    assert run_case(mm(), spreads, STRESS).status == "native"
    assert run_case(EXP, spreads, STRESS).status == "nan"


def test_pointwise_ops_can_be_run_at_the_sizes_where_kernels_change() -> None:
    inputs = spec(shape=(3, 4)), spec("other", (3, 4))
    configuration = call("aten::mul.Tensor", *inputs)
    schema = schema_of(configuration.op)
    assert 1 << 16 in SIZES
    assert (1 << 31) + 1 in SIZES
    for count in (0, 1, 65537):
        line = resized(schema, configuration, count)
        assert line is not None
        assert [each.shape for each in line.inputs] == [(count,)] * 2
        assert run_case(line, CpuDevice(), Options(gradients=False)).status == "native"
    broadcast = call("aten::mul.Tensor", spec(shape=(3, 4)), spec("other", (4,)))
    assert resized(schema, broadcast, 5) is None
    assert resized(schema_of("aten::mm"), mm(), 5) is None


@pytest.mark.parametrize(("given", "passes"), [(0.0, True), (1.0, True), (7.0, False)])
def test_what_the_cpu_answers_in_two_ways_may_be_either(given: float, passes: bool) -> None:
    """`hardtanh_backward` of NaN: the CPU's vector loop gives 0, its scalar loop the gradient."""
    configuration = call(
        "aten::hardtanh_backward",
        spec("grad_output", (20,)),
        spec("self", (20,)),
        min_val=-1.0,
        max_val=1.0,
    )
    schema = schema_of(configuration.op)
    operands = Operands((torch.ones(20), torch.full((20,), torch.nan)), (), (None, None))
    standard = standard_of(schema, configuration)
    expected = Expected(schema, configuration, operands, standard, widest=1 << 31, adversarial=True)
    outputs = {"0": torch.full((20,), given)}
    assert judge(expected, Attempt(outputs=outputs, live=outputs)).passed is passes


@pytest.mark.parametrize("family", ["laguerre_polynomial_l", "legendre_polynomial_p"])
def test_recursions_that_end_at_nan_are_not_given_any(family: str) -> None:
    configuration = call(f"aten::special_{family}", spec("x", (300,)), spec("n", (300,)))
    for trial in ("one NaN", "zeros, subnormals, infinities, NaN"):
        assert not bool(altered(configuration, trial).isnan().any())
    assert bool(altered(configuration, "zeros, subnormals, infinities, NaN").isinf().any())


def test_values_that_the_cpu_refuses_in_its_own_dtype_say_nothing_of_a_device() -> None:
    # The range of equal numbers, widened by one either way, is none in bfloat16.
    configuration = call("aten::histc", spec(shape=(), dtype="bfloat16"), bins=3, min=0, max=0)
    result = run_case(configuration, CpuDevice(), STRESS)
    assert result.status == "native", (result.trial, result.error)
    assert "huge" not in result.trials
