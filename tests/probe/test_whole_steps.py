"""Whole steps run freely: where a device parts from the CPU, and who makes the first NaN."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from scanner.locate.interface import Subject
from scanner.records import Divergence

from .whole_support import trained, walked


@pytest.mark.parametrize(("drop", "adam"), [(0.0, False), (0.5, True)])
def test_the_cpu_does_not_part_from_itself(drop: float, adam: bool) -> None:
    result = walked(lambda: trained(drop, adam=adam), steps=3)
    assert (result.first, result.drift, result.first_nan, result.ended) == (None,) * 4
    assert (result.steps, result.asked, result.incomplete) == (3, 3, "")
    assert result.ops >= result.compared > 60
    assert set(result.worst) == {"forward", "loss", "backward", "optimizer"}
    assert max(result.worst.values()) <= 1
    for loss in result.losses:
        assert loss.device == loss.cpu == pytest.approx(loss.raised, rel=1e-5)
    assert len(result.losses) == 3


@pytest.mark.parametrize(
    ("fault", "op", "phase"),
    [
        ("bias=aten::tanh", "aten::tanh", "forward"),
        ("bias=aten::nll_loss_forward", "aten::nll_loss_forward", "loss"),
        ("bias=aten::_softmax_backward_data", "aten::_softmax_backward_data", "backward"),
        ("noinplace=aten::add_.Tensor[dtype=float32]", "aten::add_.Tensor", "optimizer"),
        ("dtype=aten::tanh", "aten::tanh", "forward"),
        ("nan=aten::tanh_backward", "aten::tanh_backward", "backward"),
    ],
)
def test_the_guilty_op_is_named_with_its_phase(fault: str, op: str, phase: str) -> None:
    result = walked(trained, f"drill:{fault}", steps=2)
    assert result.first is not None
    assert (result.first.op, result.first.phase, result.first.step) == (op, phase, 1)
    assert result.drift is None
    assert (result.first_nan is not None) == fault.startswith("nan")
    if fault.startswith("bias"):
        assert result.first.error == pytest.approx(0.01, rel=0.05)
        assert result.worst[phase] > 1
    assert result.first.location is not None
    assert result.first.location.file == "tests/probe/whole_support.py"


def test_a_fault_of_a_later_step_is_found_there() -> None:
    result = walked(trained, "drill:bias=aten::tanh@3", steps=4)
    assert result.first is not None
    assert (result.first.op, result.first.step) == ("aten::tanh", 3)
    assert result.losses[1].device == result.losses[1].cpu
    assert result.losses[2].device != result.losses[2].cpu


def test_the_producer_of_nan_is_named_not_who_passes_it_on() -> None:
    result = walked(trained, "drill:nan=aten::_softmax")
    assert result.first_nan is not None
    assert (result.first_nan.op, result.first_nan.phase) == ("aten::_softmax", "forward")
    assert result.first_nan.message == "infinity or NaN in 1 element"
    assert result.losses[0].device is None
    assert result.losses[0].cpu is not None


def test_three_units_in_the_last_place_pass() -> None:
    result = walked(trained, "drill:noise=aten::tanh", steps=2)
    assert (result.first, result.drift) == (None, None)


class Cancelling(nn.Module):
    """Nothing is left of 0.5 - 0.5, unless rounding left something, which then is large."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(64))

    def forward(self) -> Tensor:
        return ((self.weight.sigmoid() - 0.5) * 1e6).sum()


def test_rounding_that_grows_is_drift_and_nobodys_fault() -> None:
    def build() -> Subject:
        model = Cancelling()
        return Subject(model=model, loss=lambda out: out)

    result = walked(build, "drill:noise=aten::sigmoid")
    assert result.first is None
    assert result.drift is not None
    assert (result.drift.op, result.drift.phase) == ("aten::mul.Tensor", "forward")


def test_an_op_that_raises_ends_the_run() -> None:
    result = walked(trained, "drill:raise=aten::_softmax@2", steps=3)
    assert result.ended is not None
    assert (result.ended.op, result.ended.step, result.ended.kind) == (
        "aten::_softmax",
        2,
        "raises",
    )
    assert (result.steps, result.incomplete) == (1, "")


def test_memory_that_runs_out_blames_no_op() -> None:
    result = walked(trained, "drill:oom=aten::_softmax")
    assert (result.ended, result.steps) == (None, 0)
    assert "too little memory" in result.incomplete


def test_inference_has_no_loss() -> None:
    def build() -> Subject:
        return Subject(model=nn.Linear(4, 2).eval(), args=(torch.randn(3, 4),))

    result = walked(build, steps=2)
    assert (result.steps, result.losses, result.first) == (2, (), None)
    assert set(result.worst) == {"forward"}


class Indexing(nn.Module):
    """Whole numbers, views, in-place writes, a factorisation and a tensor kept on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6))

    def forward(self, x: Tensor) -> Tensor:
        scores = x @ self.weight
        best = scores.topk(2, -1).indices
        picked = scores.gather(-1, best)
        table = torch.zeros(6, 6)
        table[1:3].add_(picked.mean())
        values, vectors = torch.linalg.eigh(self.weight @ self.weight.mT + torch.eye(6))
        scale = torch.ones((), device="cpu")
        return (vectors * values).sum().abs() + table.sum() * scale + picked.sum()


def test_what_is_not_a_number_in_a_tensor_is_followed_too() -> None:
    def build() -> Subject:
        return Subject(model=Indexing(), args=(torch.randn(4, 6),), loss=lambda out: out)

    result = walked(build, steps=2)
    assert (result.first, result.drift, result.incomplete) == (None, None, "")


def test_every_op_is_announced_before_the_device_has_it() -> None:
    heard: list[Divergence] = []
    result = walked(trained, "drill:raise=aten::_softmax", doing=heard.append)
    assert heard[-1].op == "aten::_softmax"
    assert len(heard) == result.ops + 1
