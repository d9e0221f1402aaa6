"""Where inputs come from, in order."""

from __future__ import annotations

import pytest
import torch

from scanner.errors import LocateError, UsageError
from scanner.locate.inputs import as_arguments
from tests.locate.conftest import Project, note

NET = """
class Net(nn.Module):
    {extra}
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
    def forward(self, x, scale=None):
        return self.fc(x)
"""


def net(extra: str = "") -> str:
    return NET.format(extra=extra or "pass")


def shape(project: Project, **options: str) -> tuple[int, ...]:
    subject = project.build("model.py:Net", **options)
    (tensor,) = [*subject.args, *subject.kwargs.values()]
    return tuple(tensor.shape)


@pytest.mark.parametrize("spec", ["7x8", "x=7x8:float32"])
def test_a_spec_comes_first(project: Project, spec: str) -> None:
    project.torch_file(net("example_inputs = torch.zeros(5, 8)"))
    assert shape(project, inputs=spec) == (7, 8)


def test_a_spec_that_does_not_parse(project: Project) -> None:
    project.torch_file(net())
    with pytest.raises(UsageError, match="character 3: expected a shape"):
        project.build(inputs="x=")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("y=2x8", "missing a required argument: 'x'"),
        ("2x8,2,2", "too many positional arguments"),
        ("x=2x8,y=2", "got an unexpected keyword argument 'y'"),
    ],
)
def test_a_spec_that_does_not_fit(project: Project, spec: str, problem: str) -> None:
    project.torch_file(net())
    with pytest.raises(UsageError) as caught:
        project.build(inputs=spec)
    assert caught.value.message == f"--inputs does not fit forward(x, scale) of Net: {problem}"


def test_a_spec_too_large_to_make(project: Project) -> None:
    project.torch_file(net())
    with pytest.raises(UsageError, match="cannot be made"):
        project.build(inputs="9000000000000x9000000000000")


@pytest.mark.parametrize(
    "name", ["example_inputs", "example_input", "example_input_array", "dummy_inputs"]
)
@pytest.mark.parametrize(
    "value",
    [
        "torch.zeros(5, 8)",
        "(torch.zeros(5, 8),)",
        "{'x': torch.zeros(5, 8)}",
        "lambda: torch.zeros(5, 8)",
    ],
)
def test_well_known_names_in_the_file(project: Project, name: str, value: str) -> None:
    project.torch_file(net() + f"{name} = {value}\n")
    assert shape(project) == (5, 8)


@pytest.mark.parametrize(
    "extra",
    [
        "example_input_array = torch.zeros(5, 8)",
        "@property\n    def dummy_inputs(self): return {'x': torch.zeros(5, 8)}",
        "def get_example_inputs(self): return (torch.zeros(5, 8),)",
    ],
)
def test_well_known_names_on_the_model(project: Project, extra: str) -> None:
    project.torch_file(net(extra) + "example_inputs = torch.zeros(6, 8)\n")
    assert shape(project) == (5, 8)


def test_the_source_of_known_inputs_is_noted(project: Project) -> None:
    project.torch_file(net() + "example_inputs = torch.zeros(5, 8)\n")
    assert "inputs from model.py:example_inputs (5x8:float32)" in project.build().notes


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("3", "it is a int, not tensors"),
        ("lambda: 1 / 0", "ZeroDivisionError"),
    ],
)
def test_known_inputs_that_are_no_tensors_are_noted_and_others_inferred(
    project: Project, value: str, reason: str
) -> None:
    project.torch_file(net() + f"example_inputs = {value}\n")
    subject = project.build()
    assert tuple(subject.args[0].shape) == (2, 8)
    assert reason in note(subject, "model.py:example_inputs")
    assert note(subject, "inputs inferred") == 'inputs inferred: --inputs "x=2x8:float32"'


def test_a_model_that_raises_on_the_inputs_of_its_file_is_not_tried_with_others(
    project: Project,
) -> None:
    project.torch_file(net() + "example_inputs = torch.zeros(5, 9)\n")
    with pytest.raises(LocateError, match=r"raises on model\.py:example_inputs: model\.py:10"):
        project.build()


def test_tensors_that_the_file_s_own_step_passes(project: Project) -> None:
    project.torch_file("""
        X, y = torch.zeros(50, 8), torch.zeros(50, 4)
        model = nn.Linear(8, 4)
        loss = F.mse_loss(model(X.float()), y)
        loss.backward()
    """)
    subject = project.build()
    assert tuple(subject.args[0].shape) == (50, 8)
    assert note(subject, "inputs") == "inputs from model.py:6 (50x8:float32)"


def test_functions_on_tensors_take_inputs_too(project: Project) -> None:
    project.torch_file("def f(x, y): return x @ y\n")
    subject = project.build("model.py:f", inputs="2x3,3x4")
    assert subject.model(*subject.args).shape == (2, 4)


def test_arguments() -> None:
    tensor = torch.zeros(1)
    assert as_arguments(tensor) == ((tensor,), {})
    assert as_arguments([tensor, 3]) == ((tensor, 3), {})
    assert as_arguments({"a": tensor}) == ((), {"a": tensor})
    assert as_arguments(3) is None
