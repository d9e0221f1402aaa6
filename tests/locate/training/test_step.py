"""The file's own training step: its loss on the model's output, at the user's lines."""

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
    def encode(self, x):
        return self.fc(x).relu()
"""
"""The file's own code starts at line 12."""


def subject(project: Project, code: str, net: str = NET) -> Subject:
    project.torch_file(net + code)
    return project.build("model.py:Net")


def is_scalar(subject: Subject) -> bool:
    with torch.device("meta"):
        output = (subject.forward or subject.model)(*subject.args, **subject.kwargs)
        assert subject.loss is not None
        found: torch.Tensor = subject.loss(output)
    return found.dim() == 0 and found.requires_grad


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["out = model(x)", "loss = F.cross_entropy(out, y)", "loss.backward()"],
            "loss = F.cross_entropy(out, y) with y=2:int64[0,3]",
        ),
        (
            ["loss = nn.CrossEntropyLoss()(model(x.to('meta')), y.to('meta'))", "loss.backward()"],
            "loss = nn.CrossEntropyLoss()(output, y.to('meta')) with y=2:int64[0,3]",
        ),
        (
            ["out = model(x)", "F.mse_loss(out, y).backward()"],
            "F.mse_loss(out, y) with y=2x3:float32[0.0,1.0]",
        ),
        (
            ["out = model(x)", "loss = out.mean()", "scaler.scale(loss).backward()"],
            "loss = out.mean()",
        ),
        (
            ["out = model(x)", "loss = out.mean()", "accelerator.backward(loss)"],
            "loss = out.mean()",
        ),
        (
            ["out = model(x)", "loss = out.mean()", "(loss / 4).backward()"],
            "loss / 4",
        ),
        (
            ["out = model(x)", "loss = out.mean()", "loss = loss / steps", "loss.backward()"],
            "loss = loss / steps",
        ),
        (
            ["out = model(x)", "loss = 0", "loss += out.sum()", "loss.backward()"],
            "loss += out.sum()",
        ),
        (
            ["loss = F.mse_loss(model(x), x[:, :3])", "loss.backward()"],
            "loss = F.mse_loss(output, x[:, :3])",
        ),
        (
            ["loss = F.l1_loss(model.forward(x), y)", "loss.backward()"],
            "loss = F.l1_loss(output, y) with y=2x3:float32[0.0,1.0]",
        ),
        (
            [
                "with torch.no_grad(): base = y * 2",
                "loss = F.l1_loss(model(x), base)",
                "loss.backward()",
            ],
            "loss = F.l1_loss(output, base) with base=2x3:float32[0.0,1.0]",
        ),
        (
            [
                "l2 = sum(p.pow(2).sum() for p in model.parameters())",
                "loss = model(x).sum() + 1e-4 * l2",
                "loss.backward()",
            ],
            "loss = output.sum() + 0.0001 * l2",
        ),
    ],
)
def test_loss_expressions(project: Project, lines: list[str], expected: str) -> None:
    body = "".join(f"        {line}\n" for line in lines)
    found = subject(project, "def train(model, loader, steps=4):\n    for x, y in loader:\n" + body)
    assert note(found, "loss from model.py:").partition(": ")[2] == expected
    assert is_scalar(found)


LOOP = """
def train(model, x, y, criterion=nn.MSELoss()):
    out = model(x)
    loss = criterion(
        out, y
    )
    loss.backward()
def main():
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    opt.step()
"""


def test_lines(project: Project) -> None:
    found = subject(project, LOOP)
    file = str(project.root / "model.py")
    assert found.origins == {
        "loss": (file, 15),
        "backward": (file, 18),
        "optimizer": (file, 22),
    }
    assert note(found, "loss").startswith("loss from model.py:15: ")


def test_errors_in_the_loss_are_located_in_the_user_s_file(project: Project) -> None:
    found = subject(project, LOOP)
    assert found.loss is not None
    with pytest.raises(AttributeError) as caught:
        found.loss(None)
    lines = [entry.lineno for entry in caught.traceback if str(entry.path).endswith("model.py")]
    assert lines[-1] + 1 == 15


@pytest.mark.parametrize(
    "code",
    [
        "def main(net):\n    net(x).sum().backward()\n",
        "def main():\n    whatever = Net()\n    whatever(x).sum().backward()\n",
        "def main():\n    a = Net()\n    b = a.to('meta')\n    b(x).sum().backward()\n",
        "def main():\n    a = torch.compile(Net())\n    a(x).sum().backward()\n",
        "def go(a):\n    a(x).sum().backward()\ndef main():\n    thing = Net()\n    go(thing)\n",
        "def go(*, a):\n    a(x).sum().backward()\ndef main():\n    go(a=Net())\n",
        "class T:\n    def __init__(self, a):\n        self.a = a\n    def fit(self):\n"
        "        self.a(x).sum().backward()\ndef main():\n    T(Net())\n",
        "def main():\n    a = Net()\n    def closure():\n        a(x).sum().backward()\n",
        "if __name__ == '__main__':\n    a = Net()\n    a(x).sum().backward()\n",
        "def step(a, x):\n    return a(x).sum()\ndef main():\n    a = Net()\n"
        "    step(a, x).backward()\n",
        "class T:\n    def __init__(self): self.a = Net()\n    def loss(self, x):\n"
        "        return self.a(x).sum()\n    def fit(self, x):\n        self.loss(x).backward()\n",
        "def step(a, x):\n    loss = a(x).sum()\n    return x, loss\ndef main():\n    a = Net()\n"
        "    _, loss = step(a, x)\n    loss.backward()\n",
    ],
)
def test_the_model_by_any_name(project: Project, code: str) -> None:
    found = subject(project, code)
    assert "sum()" in note(found, "loss from")
    assert is_scalar(found)


@pytest.mark.parametrize(
    "code",
    [
        "def main():\n    model = Other()\n    model(x).sum().backward()\n",
        "def go(model):\n    model(x).sum().backward()\ndef main():\n    go(Other())\n",
        "def main(encoder):\n    encoder(x).sum().backward()\n",
        "def main(model):\n    model(x).sum().item()\n",
    ],
)
def test_another_model_s_step_is_not_taken(project: Project, code: str) -> None:
    found = subject(project, NET.replace("Net", "Other") + code)
    assert [text for text in found.notes if text.startswith("loss")] == []


def test_each_model_gets_its_own_step(project: Project) -> None:
    project.torch_file(
        NET
        + NET.replace("Net", "Other")
        + "def main():\n    a, b = Net(), Other()\n    a(x).sum().backward()\n"
        "    b(x).mean().backward()\n"
    )
    first, second = (project.build(f"model.py:{name}") for name in ("Net", "Other"))
    assert note(first, "loss").endswith("output.sum()")
    assert note(second, "loss").endswith("output.mean()")


def test_a_detached_step_gives_way(project: Project) -> None:
    code = (
        "def main(score):\n    model = Net()\n    out = model(x)\n"
        "    d = out.detach().mean()\n    d.backward()\n    g = out.sum()\n    g.backward()\n"
    )
    assert note(subject(project, code), "loss").endswith("g = out.sum()")


def test_a_method_of_the_model_is_the_forward(project: Project) -> None:
    code = "def main():\n    model = Net()\n    model.encode(x).sum().backward()\n"
    found = subject(project, code)
    assert found.forward == found.model.encode
    assert is_scalar(found)


def test_more_calls_of_the_model_count_as_loss(project: Project) -> None:
    code = (
        "def main(model, a, b):\n    first = model(a)\n    second = model(b)\n"
        "    F.mse_loss(first, second).backward()\n"
    )
    found = subject(project, code)
    assert note(found, "the file calls the model 2 times")
    assert is_scalar(found)


@pytest.mark.parametrize(
    ("context", "dtype"),
    [
        ("torch.autocast('mps', dtype=torch.bfloat16)", "bfloat16"),
        ("torch.autocast(device_type='mps', dtype=amp)", "float16"),
        ("torch.amp.autocast('mps')", "float16"),
        ("torch.autocast('mps', torch.bfloat16)", "bfloat16"),
        ("torch.autocast('mps', enabled=False)", None),
        ("torch.autograd.set_detect_anomaly(True)", None),
    ],
)
def test_autocast(project: Project, context: str, dtype: str | None) -> None:
    code = (
        f"amp = torch.float16\ndef main(model, x):\n    with {context}:\n"
        "        out = model(x)\n        loss = out.sum()\n    loss.backward()\n"
    )
    found = subject(project, code)
    assert found.autocast == dtype
    assert (f"autocast to {dtype} around the forward" in found.notes) == (dtype is not None)


def test_a_gradient_scaler_is_mentioned(project: Project) -> None:
    code = (
        "def main(model, x, scaler):\n    loss = model(x).sum()\n"
        "    scaler.scale(loss).backward()\n"
    )
    assert "the gradient scaler at model.py:14 is left out of the step" in (
        subject(project, code).notes
    )


def test_parts_in_several_functions_are_run_one_after_another(project: Project) -> None:
    code = (
        "def residual(model, x):\n    u = model(x)\n    return x, u * 2, u.sum().item()\n"
        "def main(x):\n    model = Net()\n    _, r, _ = residual(model, x)\n"
        "    loss = (r ** 2).mean()\n    loss.backward()\n"
    )
    found = subject(project, code)
    assert "(None, u * 2, None)" in note(found, "loss")
    assert is_scalar(found)


def test_derivatives_by_the_inputs(project: Project) -> None:
    code = (
        "def main():\n    model = Net()\n    x = torch.rand(5, 8, requires_grad=True)\n"
        "    u = model(x)\n    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]\n"
        "    loss = (du ** 2).mean()\n    loss.backward()\n"
    )
    found = subject(project, code)
    assert found.args[0].requires_grad
    assert is_scalar(found)


def test_a_teacher_without_gradients_has_no_step(project: Project) -> None:
    code = (
        "def main(x):\n    with torch.no_grad():\n        t = Net()(x)\n        net = Net()\n"
        "        y = net(x)\n    y.sum().backward()\n"
    )
    assert subject(project, code).loss is None


def test_targets_by_the_call_that_takes_them(project: Project) -> None:
    code = (
        "def main(model, x, soft, hard):\n    out = model(x)\n"
        "    loss = F.kl_div(out.log_softmax(1), soft.softmax(1)) + F.cross_entropy(out, hard)\n"
        "    loss.backward()\n"
    )
    text = note(subject(project, code), "loss")
    assert text.endswith(" with soft=2x3:float32[0.0,1.0], hard=2:int64[0,3]")


def test_a_shifted_target_is_longer_than_the_input(project: Project) -> None:
    net = NET.replace("nn.Linear(8, 3)", "nn.Embedding(50, 50)")
    code = (
        "class T:\n    def __init__(self):\n        self.net = Net()\n"
        "    def loss(self, ids):\n        out = self.net(ids[:, :-1])\n"
        "        return F.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten())\n"
        "    def fit(self, ids):\n        loss = self.loss(ids)\n        loss.backward()\n"
    )
    assert note(subject(project, code, net), "loss").endswith(" with ids=2x129:int64[0,50]")


def test_branches_count_once(project: Project) -> None:
    code = (
        "def main(model, x, amp):\n    if amp:\n        out = model(x)\n    else:\n"
        "        out = model(x)\n    loss = out.sum()\n    loss.backward()\n"
    )
    found = subject(project, code)
    assert [text for text in found.notes if "times in one step" in text] == []


def test_inference_does_not_read_the_step(project: Project) -> None:
    project.torch_file(NET + LOOP)
    found = project.build("model.py:Net", mode="infer")
    assert (found.loss, found.optimizer, found.origins) == (None, None, {})
