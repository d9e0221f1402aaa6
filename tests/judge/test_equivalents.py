from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opdb import query
from scanner.judge.rules.equivalents import EQUIVALENTS, Equivalent, equivalent_for


def arguments(op: str) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(7)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).requires_grad_()

    steps = torch.tensor([-1.5, 0.0, 2.0, 0.0])
    return {
        "aten::_cdist_backward": {"x1": draw(2, 5, 3), "x2": draw(2, 4, 3)},
        "aten::channel_shuffle": {"x": draw(2, 12, 3, 3), "groups": 3},
        "aten::hardshrink": {"x": draw(4, 9), "lambd": 0.5},
        "aten::isneginf": {"x": steps.where(steps != 0, -torch.inf)},
        "aten::isposinf": {"x": steps.where(steps != 0, torch.inf)},
        "aten::rsub": {"x": draw(4, 9), "other": draw(4, 9)},
        "aten::heaviside": {"x": steps, "values": torch.tensor([5.0, 6.0, 7.0, 8.0])},
        "aten::kthvalue": {"x": draw(4, 9), "k": 3, "dim": 1},
        "aten::take": {"x": draw(4, 9), "index": torch.tensor([[0, 35], [7, 7]])},
        "aten::vdot": {"x": draw(11), "y": draw(11)},
    }[op]


class Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        self.ops: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops.add(f"aten::{func.__name__}".removesuffix(".default"))
        return func(*args, **(kwargs or {}))


def run(expression: str, given: dict[str, Any]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    result = eval(expression, {"torch": torch}, given)
    leaves = [value for value in given.values() if getattr(value, "requires_grad", False)]
    if not leaves:
        return result, []
    return result, list(torch.autograd.grad(result, leaves, torch.full_like(result, 0.5)))


cases = pytest.mark.parametrize(("op", "rewrite"), EQUIVALENTS.items(), ids=EQUIVALENTS.keys())


@cases
def test_the_rewrite_computes_the_same_values_and_gradients(op: str, rewrite: Equivalent) -> None:
    expected, expected_grads = run(rewrite.call, arguments(op))
    found, found_grads = run(rewrite.instead, arguments(op))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found_grads, expected_grads)


@cases
def test_the_rewrite_dispatches_what_is_declared(op: str, rewrite: Equivalent) -> None:
    given = arguments(op)
    with Recorder() as recorder:
        run(rewrite.instead, given)
    with_kernel = {
        name for name in recorder.ops if query.lookup(name, query.newest()).registered == "kernel"
    }
    assert set(rewrite.ops) == with_kernel


@cases
def test_the_rewrite_is_offered_where_it_runs(op: str, rewrite: Equivalent) -> None:
    assert equivalent_for(op, "2.8.0", query) == rewrite


def test_overloads_share_a_rewrite_and_others_have_none() -> None:
    assert equivalent_for("aten::kthvalue.values", "2.8.0", query) is not None
    assert equivalent_for("aten::kthvalue_like", "2.8.0", query) is None
