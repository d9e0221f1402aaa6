"""Where the tensors are that a step makes of the host's memory, or names no device for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from scanner.locate.interface import Subject
from scanner.records import OpGraph

Make = Callable[[Tensor], Tensor]


@pytest.fixture(params=["meta", "fake", "real"])
def stepped(request: pytest.FixtureRequest, capture: Any) -> Callable[[Make], OpGraph]:
    """One step that adds what is made to its input, captured on each rung."""

    def run(make: Make) -> OpGraph:
        class Model(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                if request.param == "fake":
                    assert torch.tensor([2.0]).item() == 2.0  # meta tensors have no values
                if request.param == "real":
                    assert bool((x == 1).all())
                return x + make(x)

        graph: OpGraph = capture(
            lambda: Subject(model=Model(), args=(torch.ones(4),)), mode="infer"
        )
        assert graph.capture.method == request.param
        return graph

    return run


def wide_on_device(graph: OpGraph) -> set[str]:
    return {
        call.op
        for call in graph.ops
        for spec in (*call.inputs, *call.outputs)
        if spec.dtype == "float64" and spec.device != "cpu"
    }


ON_CPU: dict[str, Make] = {
    "from_numpy": lambda x: torch.from_numpy(np.ones(4)).float().to(x.device),
    "frombuffer": lambda x: torch.frombuffer(bytearray(32), dtype=torch.float64).float().to("mps"),
    "tensor": lambda x: torch.tensor(np.ones(4)).float().to(x.device),
    "tensor on the cpu": lambda x: torch.tensor(
        [1.0, 2, 3, 4], dtype=torch.float64, device="cpu"
    ).float().to(x.device),
    "a factory": lambda x: torch.linspace(0, 1, 4, dtype=torch.float64).float().to(x.device),
}  # fmt: skip
ON_DEVICE: dict[str, Make] = {
    "from_numpy": lambda x: torch.from_numpy(np.ones(4)).to(x.device),
    "tensor": lambda x: torch.tensor(np.ones(4), device=x.device),
    "a factory": lambda x: torch.linspace(0, 1, 4, dtype=torch.float64, device=x.device),
}


@pytest.mark.parametrize("make", ON_CPU.values(), ids=ON_CPU)
def test_float64_that_is_made_and_narrowed_on_the_cpu_stays_there(
    stepped: Callable[[Make], OpGraph], make: Make
) -> None:
    graph = stepped(make)
    assert not wide_on_device(graph)
    added = next(call for call in graph.ops if call.op == "aten::add.Tensor")
    assert [spec.device for spec in added.inputs] == ["target", "target"]


@pytest.mark.parametrize("make", ON_DEVICE.values(), ids=ON_DEVICE)
def test_float64_that_reaches_the_device_is_recorded_where_it_does(
    stepped: Callable[[Make], OpGraph], make: Make
) -> None:
    assert wide_on_device(stepped(make)) - {"aten::add.Tensor"}


def test_a_default_device_that_the_user_chose_counts(capture: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            torch.set_default_device("mps")
            return x + torch.linspace(0, 1, 4, dtype=torch.float64).float()

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(4),)), mode="infer")
    assert "aten::linspace" in wide_on_device(graph)


def test_what_names_no_device_is_where_its_neighbours_are(capture: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.linspace(0, 1, 4)

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(4),)), mode="infer")
    (made,) = [call for call in graph.ops if call.op == "aten::linspace"]
    assert made.outputs[0].device == "target"


@pytest.mark.parametrize("ask", [bool, int])
def test_a_tensor_with_values_believes_in_the_gpu_too(capture: Any, ask: Any) -> None:
    """`int` of a new tensor takes a fake one, `bool` of the input a real one."""

    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            assert ask(x.sum() if ask is bool else torch.tensor([2]))
            assert x.device == torch.device("mps:0")
            assert x.cpu().device == torch.device("cpu")
            return x + torch.ones(4, device="cpu").to(x)

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(4),)), mode="infer")
    assert graph.capture.method == ("real" if ask is bool else "fake")
    (added,) = [call for call in graph.ops if call.op == "aten::add.Tensor"]
    assert [spec.device for spec in added.inputs] == ["target", "target"]
