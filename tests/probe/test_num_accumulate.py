"""A step run freely: where a device parts from the CPU, and who makes the first NaN."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from scanner.probe.accumulate import Accumulated, Step, accumulate, compare_traces
from scanner.probe.trace import Tracer


class Net(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(self.first(x).tanh()).softmax(-1))


class Faulty(TorchDispatchMode):
    """Changes what one op gives, from its nth run on."""

    def __init__(self, op: str, change: Callable[[Tensor], Tensor], nth: int = 0) -> None:
        super().__init__()
        self._op, self._change, self._left = op, change, nth

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if str(func) != self._op:
            return result
        self._left -= 1
        return result if self._left >= 0 else self._change(result)


def maker(drop: float) -> Callable[[torch.device, torch.dtype | None], Step]:
    """A training step from the same start each time; every device is the CPU."""
    torch.manual_seed(0)
    start, data, target = Net(drop), torch.randn(8, 6), torch.randint(0, 3, (8,))

    def make(device: torch.device, dtype: torch.dtype | None) -> Step:
        kind = dtype or torch.float32
        model, x = copy.deepcopy(start).to(kind), data.to(kind)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)

        def step(tracer: Tracer) -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), target).backward()
            tracer.phase = "optimizer"
            optimizer.step()

        return step

    return make


def run(fault: Faulty, steps: int = 1) -> Accumulated:
    """The device is the CPU with a fault below the tracer."""
    make = maker(0.0)
    cpu, wide, ours = (Tracer() for _ in range(3))
    for tracer, dtype in ((cpu, None), (wide, torch.float64), (ours, None)):
        step = make(torch.device("cpu"), dtype)
        with fault if tracer is ours else nullcontext(), tracer:
            for tracer.step in range(steps):
                tracer.phase = "forward"
                step(tracer)
    return compare_traces(ours.entries, cpu.entries, wide.entries)


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_the_cpu_does_not_part_from_itself(drop: float) -> None:
    result = accumulate(maker(drop), torch.device("cpu"), steps=3)
    assert result.first is None
    assert result.first_nan is None
    assert result.compared == result.ops > 60
    assert set(result.worst) == {"forward", "backward", "optimizer"}
    assert max(result.worst.values()) <= 1


@pytest.mark.parametrize(
    ("op", "phase"),
    [
        ("aten.tanh.default", "forward"),
        ("aten._softmax_backward_data.default", "backward"),
        ("aten.add_.Tensor", "optimizer"),
    ],
)
def test_the_first_op_past_tolerance_is_named_with_its_phase(op: str, phase: str) -> None:
    result = run(Faulty(op, lambda x: x.mul_(1.01)))
    assert result.first is not None
    assert (result.first.op, result.first.phase) == (
        op.replace("aten.", "aten::").replace(".default", ""),
        phase,
    )
    assert result.first.error == pytest.approx(0.01, rel=0.05)
    assert result.first_nan is None
    assert result.worst[phase] > 1


def test_a_fault_of_a_later_step_is_found_there() -> None:
    result = run(Faulty("aten.tanh.default", lambda x: x.mul_(1.01), nth=2), steps=3)
    assert result.first is not None
    assert (result.first.op, result.first.step) == ("aten::tanh", 2)


def test_the_producer_of_the_first_nan_is_named_not_who_passes_it_on() -> None:
    def spoil(x: Tensor) -> Tensor:
        x.view(-1)[3] = torch.nan
        return x

    result = run(Faulty("aten.tanh.default", spoil))
    assert result.first_nan is not None
    assert result.first_nan.op == "aten::tanh"
    assert result.first_nan.message == "1 elements are infinite or NaN"


def test_a_small_error_passes() -> None:
    assert run(Faulty("aten.tanh.default", lambda x: x.mul_(1 + 1e-7))).first is None


def test_ops_that_only_one_side_runs_are_passed_over() -> None:
    def entries(decomposed: bool) -> list[Any]:
        with Tracer() as tracer:
            x = torch.ones(3)
            x.neg().neg().exp() if decomposed else x.exp()
            x.sin()
        return tracer.entries

    result = compare_traces(entries(True), entries(False), entries(False))
    assert (result.ops, result.compared, result.first) == (5, 3, None)
