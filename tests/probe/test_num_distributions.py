"""Random ops: right generators pass, generators that are off are told how."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import run_case
from scanner.records import OpCall
from tests.probe.num_support import QUICK, Spoiled, call, in_place, kinds, spec

LINE = spec(shape=(4000,))
RIGHT = [
    call("aten::normal_", LINE, mean=1.0, std=2.0),
    call("aten::randn", size=[3000], device="mps"),
    call("aten::randn", size=[3000], dtype="complex64", device="mps"),
    call("aten::rand", size=[3000], dtype="bfloat16", device="mps"),
    call("aten::uniform_", LINE, **{"from": -1.0, "to": 3.0}),
    call("aten::randint.low", low=-3, high=9, size=[2000], device="mps"),
    call("aten::random_", spec(shape=(500,), dtype="int64")),
    call("aten::randperm", n=50, device="mps"),
    call("aten::bernoulli", LINE),
    call("aten::bernoulli_.float", LINE, p=0.2),
    call("aten::exponential_", LINE, lambd=0.5),
    call("aten::geometric_", LINE, p=0.3),
    call("aten::cauchy_", LINE, median=1.0, sigma=2.0),
    call("aten::log_normal_", LINE, mean=0.5, std=0.5),
    call("aten::poisson", LINE),
    call("aten::binomial", spec("count", (2000,)), spec("prob", (2000,))),
    call("aten::multinomial", spec(shape=(5, 20)), num_samples=400, replacement=True),
    call("aten::multinomial", spec(shape=(5, 20)), num_samples=10, replacement=False),
    call("aten::_standard_gamma", LINE),
    call("aten::_sample_dirichlet", spec(shape=(100, 4))),
    call("aten::native_dropout", spec("input", (4000,)), p=0.3, train=True),
    call(
        "aten::rrelu_with_noise", LINE, spec("noise", (4000,)), lower=0.1, upper=0.3, training=True
    ),
]


@pytest.mark.parametrize("configuration", RIGHT, ids=lambda c: c.op)
def test_a_right_generator_passes(configuration: OpCall) -> None:
    for shape in (None, (1,), (7,)):
        result = run_case(_resized(configuration, shape), CpuDevice(), QUICK)
        assert result.status == "native", result.reason


def _resized(configuration: OpCall, shape: tuple[int, ...] | None) -> OpCall:
    if shape is None or {len(s.shape) for s in configuration.inputs} != {1}:
        return configuration
    inputs = [spec(s.name, shape, s.dtype) for s in configuration.inputs]
    return call(configuration.op, *inputs, **configuration.attributes)


@pytest.mark.parametrize(
    ("configuration", "change", "words"),
    [
        (RIGHT[0], lambda x: x + 1, "the mean is off by"),
        (RIGHT[0], lambda x: (x - 1) * 1.3 + 1, "the variance is 1.7"),
        (RIGHT[0], lambda x: torch.full_like(x, 1.0), "different values"),
        (RIGHT[1], lambda x: x * torch.nan, "are NaN"),
        (RIGHT[4], lambda x: x + 0.5, "are outside [-1, 3]"),
        (RIGHT[5], lambda x: x + 1, "are outside [-3, 8]"),
        (RIGHT[7], lambda x: x.clamp(max=40), "no permutation"),
        (RIGHT[9], lambda x: torch.ones_like(x), "4000 ones of 4000 where 800.0 are expected"),
        (RIGHT[10], lambda x: -x, "are outside"),
        (RIGHT[12], lambda x: x * 2, "ones of 4000"),
        (RIGHT[14], lambda x: x * 2, "the mean is off by"),
        (RIGHT[16], lambda x: torch.zeros_like(x), "drawn too often or too seldom"),
        (RIGHT[17], lambda x: torch.zeros_like(x), "drawn twice without replacement"),
        (RIGHT[19], lambda x: x * 0.5, "do not add up to one"),
        (RIGHT[20], lambda x: x * 1.1 if x.is_floating_point() else x, "not input · mask"),
    ],
)
def test_a_wrong_generator_is_told_how(
    configuration: OpCall, change: Callable[[Tensor], Tensor], words: str
) -> None:
    result = run_case(configuration, Spoiled(in_place(change)), QUICK)
    assert result.status == "wrong"
    assert kinds(result) == {"distribution"}
    assert words in result.reason


def test_a_random_op_that_does_not_write_is_noticed() -> None:
    class Idle(CpuDevice):
        def call(self, op, args, kwargs):
            return args[0]

    assert "in-place-ignored" in kinds(run_case(RIGHT[0], Idle(), QUICK))


def test_values_without_a_promise_are_skipped_with_the_reason() -> None:
    result = run_case(call("aten::empty_like", LINE), CpuDevice(), QUICK)
    assert result.status == "skipped"
    assert "undefined by contract" in result.reason
