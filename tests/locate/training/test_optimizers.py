"""Optimizers and clipping, as the file makes them."""

from __future__ import annotations

import pytest
import torch

from scanner.locate.interface import Subject
from tests.locate.conftest import Project, note

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
    def forward(self, x):
        return self.fc(x)
"""


def subject(project: Project, code: str, head: str = "") -> Subject:
    project.torch_file(head + NET + code)
    return project.build("model.py:Net")


@pytest.mark.parametrize(
    ("head", "call", "expected"),
    [
        ("", "torch.optim.AdamW(net.parameters(), lr=3e-4)", "AdamW(lr=0.0003)"),
        ("import torch.optim as optim", "optim.SGD(net.parameters(), 0.1)", "SGD(lr=0.1)"),
        ("from torch import optim", "optim.Adam(params=net.parameters())", "Adam(lr=0.001)"),
        ("from torch.optim import RMSprop", "RMSprop(net.parameters(), lr=1)", "RMSprop(lr=1)"),
        (
            "LR = 0.5",
            "torch.optim.Adam(net.parameters(), lr=LR / 10, betas=(0.8, 0.9), foreach=False)",
            "Adam(lr=0.05, betas=(0.8, 0.9), foreach=False)",
        ),
        (
            "",
            "torch.optim.AdamW(list(net.parameters()), fused=True)",
            "AdamW(lr=0.001, fused=True)",
        ),
        (
            "kwargs = dict(lr=0.25)",
            "torch.optim.SGD(net.parameters(), momentum=0.9, **kwargs)",
            "SGD(lr=0.25, momentum=0.9)",
        ),
        (
            "",
            "torch.optim.AdamW(net.parameters(), lr=args.lr, eps=args.eps)",
            "AdamW(lr=0.001); lr, eps not settled by constants, defaults used",
        ),
        (
            "class Mine(torch.optim.SGD): pass",
            "Mine(filter(lambda p: p.requires_grad, net.parameters()), lr=0.125)",
            "Mine(lr=0.125)",
        ),
    ],
)
def test_constructions(project: Project, head: str, call: str, expected: str) -> None:
    found = subject(project, f"def main():\n    net = Net()\n    opt = {call}\n", head + "\n")
    assert note(found, "optimizer").partition(": ")[2] == expected
    held = {id(p) for group in found.optimizer.param_groups for p in group["params"]}
    assert held == {id(parameter) for parameter in found.model.parameters()}


def test_parameter_groups(project: Project) -> None:
    found = subject(
        project,
        "def main(wd=0.2):\n    net = Net()\n"
        "    named = dict(net.named_parameters())\n"
        "    decay = [p for p in named.values() if p.dim() >= 2]\n"
        "    other = [p for p in named.values() if p.dim() < 2]\n"
        "    groups = [{'params': decay, 'weight_decay': wd}, {'params': other}]\n"
        "    opt = torch.optim.AdamW(groups, lr=0.1)\n",
    )
    groups = found.optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [0.2, 0.01]
    assert groups[0]["params"] == [found.model.fc.weight]


def test_a_method_of_the_model_makes_it(project: Project) -> None:
    net = NET + "    def configure_optimizers(self, lr):\n        return torch.optim.SGD(\n"
    net += "            self.parameters(), lr=lr)\n"
    project.torch_file(
        net + "def main():\n    model = Net()\n    optimizer = model.configure_optimizers(0.75)\n"
    )
    assert project.build("model.py:Net").optimizer.defaults["lr"] == 0.75


def test_inside_a_method_of_the_model(project: Project) -> None:
    project.torch_file(
        NET + "    def make_optimizer(self, lr=0.5):\n"
        "        return torch.optim.SGD(self.parameters(), lr=lr)\n"
    )
    assert project.build("model.py:Net").optimizer.defaults["lr"] == 0.5


def test_a_module_level_optimizer(project: Project) -> None:
    project.torch_file(
        NET + "model = Net()\nother = torch.optim.SGD(nn.Linear(1, 1).parameters())\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.5)\n"
    )
    found = project.build("model.py:model")
    assert note(found, "optimizer") == "optimizer from model.py:optimizer: SGD(lr=0.5)"
    assert found.optimizer.defaults["lr"] == 0.5


def test_another_model_s_optimizer_is_not_taken(project: Project) -> None:
    code = (
        NET.replace("Net", "Other")
        + "def main():\n    a, b = Net(), Other()\n    o = torch.optim.SGD(b.parameters())\n"
    )
    assert subject(project, code).optimizer is None


def test_several_optimizers_are_listed(project: Project) -> None:
    found = subject(
        project,
        "def main(model, kind):\n    if kind == 'sgd':\n"
        "        opt = torch.optim.SGD(model.parameters(), lr=1)\n    else:\n"
        "        opt = torch.optim.Adam(model.parameters())\n",
    )
    assert isinstance(found.optimizer, torch.optim.SGD)
    assert note(found, "other optimizers") == (
        "other optimizers for this model at line 14 were not used"
    )


def test_an_optimizer_that_cannot_be_made_is_noted(project: Project) -> None:
    found = subject(
        project, "def main(model):\n    o = torch.optim.SGD(model.parameters(), lr=-1)\n"
    )
    assert found.optimizer is None
    assert "Invalid learning rate" in note(found, "the optimizer at model.py:11")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
            "clip_grad_norm_(max_norm=0.5)",
        ),
        (
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm=2, norm_type=1)",
            "clip_grad_norm_(max_norm=2, norm_type=1)",
        ),
        ("clip_grad_value_(model.parameters(), 3)", "clip_grad_value_(clip_value=3)"),
        (
            "nn.utils.clip_grad_norm_(model.parameters(), args.clip)",
            "clip_grad_norm_(max_norm=1.0)",
        ),
    ],
)
def test_clipping(project: Project, call: str, expected: str) -> None:
    project.torch_file(
        "from torch.nn.utils import clip_grad_value_\n" + NET + f"def f(model, args):\n    {call}\n"
    )
    found = project.build_real("model.py:Net")
    assert note(found, "gradients clipped") == (f"gradients clipped as at model.py:13: {expected}")
    for parameter in found.model.parameters():
        parameter.grad = torch.full_like(parameter, 100.0)
    assert found.clip is not None
    found.clip()
    assert all(parameter.grad.max() < 100 for parameter in found.model.parameters())


def test_clipping_of_another_model_is_not_taken(project: Project) -> None:
    code = (
        NET.replace("Net", "Other") + "def main():\n    b = Other()\n"
        "    nn.utils.clip_grad_norm_(b.parameters(), 1)\n"
    )
    assert subject(project, code).clip is None


def test_clipping_happens_at_the_user_s_line(project: Project) -> None:
    found = subject(
        project,
        "def f(model):\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type='x')\n",
    )
    for parameter in found.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    assert found.clip is not None
    with pytest.raises(ValueError, match="could not convert") as caught:
        found.clip()
    lines = [entry.lineno for entry in caught.traceback if str(entry.path).endswith("model.py")]
    assert [line + 1 for line in lines] == [11]


def test_an_optimizer_step_through_a_scaler(project: Project) -> None:
    found = subject(
        project,
        "def main(model, scaler):\n    opt = torch.optim.SGD(model.parameters())\n"
        "    scaler.step(opt)\n",
    )
    assert found.origins == {"optimizer": (str(project.root / "model.py"), 12)}
