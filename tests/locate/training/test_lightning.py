"""Modules with `training_step` and `configure_optimizers`, whatever their base."""

from __future__ import annotations

import pytest
import torch

from scanner.errors import LocateError
from scanner.locate.interface import NeedsValues, Subject
from tests.locate.conftest import Project, note

LIT = """
class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
    def forward(self, x):
        return self.fc(x)
    def training_step(self, {params}):
        {body}
    def configure_optimizers(self):
        {optimizer}
"""


def subject(
    project: Project,
    body: str,
    params: str = "batch, batch_idx",
    optimizer: str = "return torch.optim.SGD(self.parameters(), lr=0.5)",
) -> Subject:
    text = LIT.format(
        params=params,
        body="\n        ".join(body.split("; ")),
        optimizer="\n        ".join(optimizer.split("; ")),
    )
    project.torch_file(text)
    return project.build()


def loss(found: Subject) -> torch.Tensor:
    assert found.forward is not None
    assert found.loss is not None
    with torch.device("meta"):
        result: torch.Tensor = found.loss(found.forward(*found.args, **found.kwargs))
    return result


@pytest.mark.parametrize(
    ("body", "batch"),
    [
        ("x, y = batch; return F.cross_entropy(self(x), y)", "(2x8:float32, 2:int64[0,3])"),
        ("x, y = batch; return F.mse_loss(self(x), y)", "(2x8:float32, 2x3:float32[0.0,1.0])"),
        (
            "x, _ = batch; return {'loss': self(x).sum(), 'n': 3}",
            "(2x8:float32, 2x3:float32[0.0,1.0])",
        ),
        ("return self(batch).sum()", "2x8:float32"),
        (
            "return F.cross_entropy(self(batch['x']), batch['label'])",
            "{x: 2x8:float32, label: 2:int64[0,3]}",
        ),
        (
            "return F.cross_entropy(self(batch[0]), batch[1])",
            "(2x8:float32, 2:int64[0,3])",
        ),
    ],
)
def test_batches(project: Project, body: str, batch: str) -> None:
    found = subject(project, body)
    assert note(found, "one step") == f"one step is Lit.training_step(batch, 0) with batch {batch}"
    assert found.forward == found.model.training_step
    assert loss(found).dim() == 0


def test_a_batch_taken_apart_by_another_method(project: Project) -> None:
    project.torch_file(
        LIT.format(
            params="batch, batch_idx",
            body="return self.shared(batch, 'train')\n    def shared(self, batch, stage):\n"
            "        x, y = batch\n        return F.cross_entropy(self(x), y)",
            optimizer="return torch.optim.SGD(self.parameters())",
        )
    )
    assert note(project.build(), "one step").endswith("(2x8:float32, 2:int64[0,3])")


def test_a_step_without_an_index(project: Project) -> None:
    found = subject(project, "x, y = batch; return F.cross_entropy(self(x), y)", "batch")
    assert len(found.args) == 1


def test_a_step_with_more_parameters(project: Project) -> None:
    found = subject(project, "return self(batch).sum()", "batch, batch_idx, optimizer_idx, n=5")
    assert found.args[1:] == (0, 0)


@pytest.mark.parametrize(
    "optimizer",
    [
        "return torch.optim.SGD(self.parameters(), lr=0.5)",
        "return [torch.optim.SGD(self.parameters(), lr=0.5)]",
        "o = torch.optim.SGD(self.parameters(), lr=0.5); return [o], [object()]",
        "return {'optimizer': torch.optim.SGD(self.parameters(), lr=0.5)}",
        "return ({'optimizer': torch.optim.SGD(self.parameters(), lr=0.5)},)",
    ],
)
def test_optimizers(project: Project, optimizer: str) -> None:
    found = subject(project, "return self(batch).sum()", optimizer=optimizer)
    assert found.optimizer.defaults["lr"] == 0.5
    assert note(found, "optimizer") == "optimizer from configure_optimizers(): SGD"


def test_an_optimizer_that_fails_is_noted(project: Project) -> None:
    found = subject(project, "return self(batch).sum()", optimizer="return 1 / 0")
    assert found.optimizer is None
    assert "ZeroDivisionError" in note(found, "configure_optimizers() was not used")


def test_no_optimizer(project: Project) -> None:
    found = subject(project, "return self(batch).sum()", optimizer="return None")
    assert found.optimizer is None
    assert "NoneType" in note(found, "configure_optimizers() was not used")


def test_a_module_without_forward(project: Project) -> None:
    text = LIT.format(
        params="batch, batch_idx",
        body="x, y = batch\n        return F.mse_loss(self.fc(x), y)",
        optimizer="return torch.optim.SGD(self.parameters())",
    ).replace("    def forward(self, x):\n        return self.fc(x)\n", "")
    project.torch_file(text)
    assert loss(project.build()).dim() == 0


def test_inference_uses_the_forward(project: Project) -> None:
    subject(project, "return self(batch).sum()")
    found = project.build(mode="infer")
    assert found.forward is None
    assert tuple(found.args[0].shape) == (2, 8)


def test_a_spec_describes_the_forward(project: Project) -> None:
    subject(project, "x, y = batch; return F.cross_entropy(self(x), y)")
    found = project.build(inputs="7x8")
    (x, y), _ = found.args
    assert (tuple(x.shape), tuple(y.shape)) == ((7, 8), (7,))


def test_a_step_that_raises(project: Project) -> None:
    with pytest.raises(LocateError) as caught:
        subject(project, "raise ValueError('nothing fits')")
    assert caught.value.message == (
        "Lit.training_step accepts no batch that was tried: model.py:11: ValueError: nothing fits\n"
        "    raise ValueError('nothing fits')"
    )


def test_a_step_that_returns_no_loss(project: Project) -> None:
    with pytest.raises(LocateError, match="it returns no scalar loss"):
        subject(project, "return self(batch)")


def test_a_step_that_reads_values(project: Project) -> None:
    with pytest.raises(NeedsValues):
        subject(project, "l = self(batch).sum(); print(l.item()); return l")
