"""Losses and the targets that fit them."""

from __future__ import annotations

import pytest
import torch

from tests.locate.conftest import Project, note

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
    def forward(self, x):
        return {output}
"""


def net(layer: str = "nn.Linear(8, 5)", output: str = "self.layer(x)") -> str:
    return NET.format(layer=layer, output=output)


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        ("F.cross_entropy(out, y)", "y=2:int64[0,5]"),
        ("F.nll_loss(F.log_softmax(out, 1), y)", "y=2:int64[0,5]"),
        ("nn.CrossEntropyLoss(weight=torch.ones(5))(out, y)", "y=2:int64[0,5]"),
        ("nn.MSELoss()(out, y)", "y=2x5:float32[0.0,1.0]"),
        ("F.binary_cross_entropy_with_logits(out, y)", "y=2x5:float32[0.0,1.0]"),
        ("F.binary_cross_entropy_with_logits(out[:, 0], y.float())", "y=2:float32[0.0,1.0]"),
        ("F.smooth_l1_loss(out.mean(1), y)", "y=2:float32[0.0,1.0]"),
        ("F.multi_margin_loss(out, y)", "y=2:int64[0,5]"),
        ("nn.KLDivLoss(reduction='batchmean')(out, y)", "y=2x5:float32[0.0,1.0]"),
        ("F.cross_entropy(out, batch['label'])", None),
    ],
)
def test_targets_by_loss(project: Project, loss: str, target: str | None) -> None:
    project.torch_file(
        net() + f"def train(model, batch, y):\n    out = model(batch['x'])\n    {loss}.backward()\n"
    )
    text = note(project.build("model.py:Net"), "loss from model.py:12")
    if target is not None:
        assert text.endswith(f" with {target}")


@pytest.mark.parametrize(
    ("layer", "output", "loss", "target"),
    [
        (
            "nn.Embedding(50, 7)",
            "self.layer(x)",
            "F.cross_entropy(out.view(-1, out.size(-1)), y.view(-1))",
            "y=2x128:int64[0,7]",
        ),
        (
            "nn.Embedding(50, 7)",
            "self.layer(x)",
            "F.cross_entropy(out.transpose(1, 2), y)",
            "y=2x128:int64[0,7]",
        ),
        (
            "nn.Embedding(50, 7)",
            "self.layer(x)",
            "F.cross_entropy(out.reshape(-1, 7), y[:, 1:].reshape(-1))",
            "y=2x129:int64[0,7]",
        ),
        (
            "nn.Embedding(50, 7)",
            "self.layer(x)",
            "F.cross_entropy(out[:, -1], y)",
            "y=2:int64[0,7]",
        ),
        (
            "nn.Conv2d(3, 4, 3, padding=1)",
            "self.layer(x)",
            "F.cross_entropy(out, y)",
            "y=2x224x224:int64[0,4]",
        ),
        (
            "nn.Linear(8, 1)",
            "self.layer(x)",
            "F.mse_loss(out.squeeze(-1), y)",
            "y=2:float32[0.0,1.0]",
        ),
        (
            "nn.Linear(8, 4)",
            "(self.layer(x), self.layer(x)[:, 0])",
            "F.mse_loss(out[0], y)",
            "y=2x4:float32[0.0,1.0]",
        ),
    ],
)
def test_targets_by_output(
    project: Project, layer: str, output: str, loss: str, target: str
) -> None:
    project.torch_file(
        net(layer, output) + f"def train(model, x, y):\n    out = model(x)\n    {loss}.backward()\n"
    )
    assert note(project.build("model.py:Net"), "loss").endswith(f" with {target}")


def test_ctc(project: Project) -> None:
    project.torch_file(
        net("nn.Linear(80, 29)", "self.layer(x).log_softmax(-1)")
        + "example_inputs = torch.zeros(4, 50, 80)\n"
        "def train(model, x, y, y_lengths):\n"
        "    out = model(x).transpose(0, 1)\n"
        "    x_lengths = torch.full((out.size(1),), out.size(0))\n"
        "    loss = nn.CTCLoss()(out, y, x_lengths, y_lengths)\n    loss.backward()\n"
    )
    subject = project.build_real("model.py:Net")
    assert note(subject, "loss").endswith(" with y=4x8:int64[1,29], y_lengths=4:int64[8,9]")
    assert subject.loss is not None
    assert torch.isfinite(subject.loss(subject.model(*subject.args)))


def test_several_targets(project: Project) -> None:
    project.torch_file(
        net(output="(self.layer(x), self.layer(x))")
        + "def train(model, x, y, z):\n    a, b = model(x)\n"
        "    loss = F.mse_loss(a, y) + F.cross_entropy(b, z)\n    loss.backward()\n"
    )
    subject = project.build("model.py:Net")
    assert subject.loss is not None
    assert "with y=" in note(subject, "loss")


@pytest.mark.parametrize(
    ("output", "suffix"),
    [
        ("self.layer(x).sum()", "output"),
        ("(self.layer(x), self.layer(x).sum())", "output[1]"),
        ("dict(loss=self.layer(x).sum(), out=x)", "output['loss']"),
        ("types.SimpleNamespace(loss=self.layer(x).sum())", "output.loss"),
    ],
)
def test_losses_that_the_model_returns(project: Project, output: str, suffix: str) -> None:
    project.torch_file("import types\n" + net(output=output))
    subject = project.build("model.py:Net")
    assert note(subject, "loss") == f"loss returned by the model: {suffix}"
    assert subject.loss is not None
    with torch.device("meta"):
        assert subject.loss(subject.model(*subject.args)).dim() == 0


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "criterion = nn.MSELoss()",
            "loss from model.py: MSELoss(output, target=2x5:float32[0.0,1.0])",
        ),
        (
            "def main():\n    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)",
            "loss from model.py:11: CrossEntropyLoss(output, target=2:int64[0,5])",
        ),
        (
            "def main(a, b):\n    return F.l1_loss(a, b)",
            "loss from model.py:11: l1_loss(output, target=2x5:float32[0.0,1.0])",
        ),
        (
            "class MyLoss(nn.Module):\n    def forward(self, a, b): return (a - b).abs().mean()\n"
            "def main():\n    crit = MyLoss()",
            "loss from model.py:13: MyLoss(output, target=2x5:float32[0.0,1.0])",
        ),
    ],
)
def test_a_criterion_without_a_step(project: Project, code: str, expected: str) -> None:
    project.torch_file(net() + code + "\n")
    assert note(project.build("model.py:Net"), "loss") == expected


def test_a_criterion_on_the_scores_of_tokens(project: Project) -> None:
    project.torch_file(net("nn.Embedding(50, 7)") + "criterion = nn.CrossEntropyLoss()\n")
    assert note(project.build("model.py:Net"), "loss") == (
        "loss from model.py: CrossEntropyLoss(output.flatten(0, 1), target=256:int64[0,7])"
    )


def test_a_function_named_loss(project: Project) -> None:
    project.torch_file(net() + "def loss_fn(out, y):\n    return ((out - y) ** 2).mean()\n")
    assert note(project.build("model.py:Net"), "loss") == (
        "loss from model.py: loss_fn(output, target=2x5:float32[0.0,1.0])"
    )


def test_no_loss(project: Project) -> None:
    project.torch_file(net())
    assert project.build("model.py:Net").loss is None


def test_real_targets_stay_in_range(project: Project) -> None:
    project.torch_file(
        net() + "def train(model, x, y):\n    F.cross_entropy(model(x), y).backward()\n"
    )
    subject = project.build_real("model.py:Net")
    assert subject.loss is not None
    assert subject.loss(subject.model(*subject.args)) > 0
