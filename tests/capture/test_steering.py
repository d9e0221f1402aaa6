"""Real values of what steers an op are kept, within bounds, and the same each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from scanner.capture.steering import LIMIT, steering_values
from scanner.locate.interface import Subject
from scanner.records import OpCall, OpGraph

Capture = Callable[..., OpGraph]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_and_bools_are_kept_in_row_major_order(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1, 1], [1, 0, 0]]).to(dtype)
    assert steering_values([("index", tensor), ("t", tensor.t())]) == {
        "index": (0, 1, 1, 1, 0, 0),
        "t": (0, 1, 1, 0, 1, 0),
    }


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2, dtype=torch.int64, device="meta"),
        torch.ones(0, dtype=torch.int64),
        torch.eye(2, dtype=torch.int64).to_sparse(),
    ],
)
def test_other_tensors_are_not(tensor: Tensor) -> None:
    assert steering_values([("self", tensor)]) == {}


def test_fake_tensors_have_no_values() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        made = mode.from_tensor(torch.ones(2, dtype=torch.int64))
    assert steering_values([("self", made)]) == {}


def test_inside_vmap_there_are_no_values() -> None:
    seen: list[dict[str, Any]] = []

    def look(row: Tensor) -> Tensor:
        seen.append(steering_values([("self", row)]))
        return row

    torch.vmap(look)(torch.ones(2, 3, dtype=torch.int64))
    assert seen == [{}]


def test_what_does_not_fit_is_left_out_and_what_follows_may_fit() -> None:
    large = torch.full((500,), 123456789)
    found = steering_values([("a", large), ("b", torch.tensor([1])), ("c", large)])
    assert found == {"b": (1,)}
    assert steering_values([("a", torch.zeros(LIMIT, dtype=torch.int64))]) == {}


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=300), max_size=8))
def test_a_configuration_never_exceeds_the_limit(arguments: list[list[int]]) -> None:
    tensors = [(f"indices[{n}]", torch.tensor(v)) for n, v in enumerate(arguments) if v]
    found = steering_values(tensors)
    assert len(msgspec.json.encode(found)) <= LIMIT
    assert all(found[name] == tuple(t.tolist()) for name, t in tensors if name in found)


class Choosing(nn.Module):
    """Needs real values: how many rows are chosen depends on them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        drawn = torch.rand(4) > 0.5
        return self.layer(x)[chosen].sum() + self.layer(x)[drawn].sum()


def build() -> Subject:
    chosen = torch.tensor([True, False, True, True])
    return Subject(model=Choosing(), args=(torch.ones(4, 3), chosen))


def only(graph: OpGraph, op: str) -> OpCall:
    (call,) = (call for call in graph.ops if call.op == op)
    return call


def test_a_real_step_keeps_what_steers_it(capture: Capture) -> None:
    graph = capture(build)
    assert graph.capture.method == "real"
    masks = [call.values for call in graph.ops if call.op == "aten::index.Tensor"]
    assert {"indices[0]": (1, 0, 1, 1)} in masks
    assert all(call.values.keys() <= {spec.name for spec in call.inputs} for call in graph.ops)


def test_values_are_the_same_in_every_capture(capture: Capture) -> None:
    first = capture(build)
    torch.rand(7)  # whatever has been drawn before
    assert capture(build).ops == first.ops


def test_a_step_without_values_keeps_none(capture: Capture) -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 3)

        def forward(self, index: Tensor) -> Tensor:
            return self.table(index).sum()  # type: ignore[no-any-return]

    graph = capture(lambda: Subject(model=Looking(), args=(torch.tensor([1, 2]),)))
    assert graph.capture.method == "meta"
    assert not any(call.values for call in graph.ops)


def test_values_are_those_before_the_call(capture: Capture) -> None:
    class Counting(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            count = torch.zeros(2, dtype=torch.int64)
            count.add_(3)
            return x[x > count.sum().item()]

    graph = capture(lambda: Subject(model=Counting(), args=(torch.ones(2),)), mode="infer")
    assert only(graph, "aten::add_.Tensor").values["self"] == (0, 0)
    assert only(graph, "aten::sum").values == {"self": (3, 3)}
