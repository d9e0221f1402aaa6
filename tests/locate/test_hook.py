"""`opscan_model()` and what it may return."""

from __future__ import annotations

import pytest
import torch

from scanner.errors import LocateError
from scanner.locate.interface import NeedsValues
from tests.locate.conftest import Project


def hook(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"def opscan_model():\n    net = nn.Linear(3, 4)\n{lines}\n"


@pytest.mark.parametrize(
    "inputs", ["torch.empty(2, 3)", "(torch.empty(2, 3),)", "[torch.empty(2, 3)]"]
)
def test_positional_inputs(project: Project, inputs: str) -> None:
    project.torch_file(hook(f"return net, {inputs}"))
    subject = project.build()
    assert [tuple(arg.shape) for arg in subject.args] == [(2, 3)]
    assert subject.args[0].is_meta
    assert subject.kwargs == {}
    assert (subject.loss, subject.optimizer, subject.notes) == (None, None, ())


def test_named_inputs(project: Project) -> None:
    project.torch_file(hook("return net, {'input': torch.empty(2, 3)}"))
    subject = project.build()
    assert subject.args == ()
    assert tuple(subject.kwargs["input"].shape) == (2, 3)


def test_loss_and_optimizer(project: Project) -> None:
    project.torch_file(
        hook(
            "optimizer = torch.optim.SGD(net.parameters())\n"
            "return net, torch.empty(2, 3), lambda out: out.sum(), optimizer"
        )
    )
    subject = project.build()
    assert subject.loss is not None
    assert subject.loss(torch.ones(3)) == 3
    assert isinstance(subject.optimizer, torch.optim.SGD)


def test_none_for_loss_or_optimizer(project: Project) -> None:
    project.torch_file(hook("return net, torch.empty(2, 3), None, None"))
    assert project.build().loss is None


def test_any_callable_is_a_model(project: Project) -> None:
    project.torch_file("def opscan_model():\n    return torch.linalg.svd, torch.empty(3, 3)\n")
    assert callable(project.build().model)


def test_inference_leaves_training_out(project: Project) -> None:
    project.torch_file(hook("return net, torch.empty(2, 3), lambda out: out.sum()"))
    assert project.build(mode="infer").loss is None


def test_a_spec_does_not_replace_the_hook_s_inputs(project: Project) -> None:
    project.torch_file(hook("return net, torch.empty(2, 3)"))
    subject = project.build(inputs="9x3")
    assert tuple(subject.args[0].shape) == (2, 3)
    assert subject.notes == ("--inputs is not used: opscan_model() gives the inputs",)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("pass", "returned None"),
        ("return net", "returned a Linear"),
        ("return (net,)", "returned a tuple of 1 (Linear)"),
        ("return net, net, net, net, net", "returned a tuple of 5"),
        ("return [net, torch.empty(2, 3)]", "returned a list"),
        ("return 3, torch.empty(2, 3)", "the model is an int, which cannot be called"),
        ("return net, None", "the inputs are None"),
        ("return net, 3", "the inputs are an int"),
        ("return net, ()", "the inputs do not fit Linear"),
        ("return net, {'x': torch.empty(2, 3)}", "the inputs do not fit Linear"),
        ("return net, torch.empty(2, 3), 3", "the loss is an int, which cannot be called"),
        ("return net, torch.empty(2, 3), nn.MSELoss()", "the loss needs input, target"),
        ("return net, torch.empty(2, 3), lambda a, b: a", "the loss needs a, b"),
        (
            "return net, torch.empty(2, 3), None, torch.optim.SGD",
            "the optimizer is the class SGD, not an object of it",
        ),
        (
            "return net, torch.empty(2, 3), None, torch.optim.SGD(nn.Linear(1, 1).parameters())",
            "the optimizer holds none of the model's parameters",
        ),
    ],
)
def test_wrong_returns_are_explained(project: Project, body: str, problem: str) -> None:
    project.torch_file(hook(body))
    with pytest.raises(LocateError) as caught:
        project.build()
    assert caught.value.message.startswith("model.py: opscan_model()")
    assert problem in caught.value.message
    assert caught.value.remedy


def test_the_remedy_states_the_contract(project: Project) -> None:
    project.torch_file(hook("return net"))
    with pytest.raises(LocateError) as caught:
        project.build()
    assert "must return (model, inputs), (model, inputs, loss)" in caught.value.remedy


def test_a_hook_with_parameters(project: Project) -> None:
    project.torch_file("def opscan_model(width): pass\n")
    with pytest.raises(LocateError, match="needs width") as caught:
        project.build()
    assert caught.value.remedy == "give them defaults"


def test_a_hook_that_is_no_function(project: Project) -> None:
    project.torch_file("opscan_model = 3\n")
    with pytest.raises(LocateError, match="is not a function"):
        project.build()


def test_a_hook_that_raises(project: Project) -> None:
    project.torch_file(hook("raise ValueError('no data')"))
    with pytest.raises(LocateError) as caught:
        project.build()
    assert caught.value.message == (
        "model.py: opscan_model() failed: model.py:6: ValueError: no data\n"
        "    raise ValueError('no data')"
    )


def test_a_hook_that_reads_values(project: Project) -> None:
    project.torch_file(hook("return net, torch.empty(int(torch.tensor(2).item()), 3)"))
    with pytest.raises(NeedsValues):
        project.build()
    assert tuple(project.build_real().args[0].shape) == (2, 3)
