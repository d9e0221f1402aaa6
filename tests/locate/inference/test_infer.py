"""Inputs found by trying, as the note spells them."""

from __future__ import annotations

import pytest

from scanner.errors import LocateError
from scanner.locate.interface import NeedsValues
from tests.locate.conftest import Project, note

NET = """
{before}
class Net(nn.Module):
    def __init__(self{args}):
        super().__init__()
        {init}
    def forward(self, {params}):
        {body}
"""


def net(init: str, params: str, body: str, before: str = "", args: str = "") -> str:
    return NET.format(
        before=before,
        args=args,
        init="\n        ".join(init.split("; ")),
        params=params,
        body="\n        ".join(body.split("; ")),
    )


def spec(project: Project, text: str) -> str:
    project.torch_file(text)
    return note(project.build("model.py:Net"), "inputs inferred: --inputs ").split('"')[1]


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("nn.Linear(20, 3)", "x=2x20:float32"),
        ("nn.Linear(20, 3).double()", "x=2x20:float64"),
        ("nn.Linear(20, 3).half()", "x=2x20:float16"),
        ("nn.Linear(1, 3)", "x=2x1:float32"),
        ("nn.Conv1d(4, 8, 3)", "x=2x4x1024:float32"),
        ("nn.Conv2d(1, 8, 3)", "x=2x1x28x28:float32"),
        ("nn.Conv2d(3, 8, 3)", "x=2x3x224x224:float32"),
        ("nn.Conv2d(12, 8, 3)", "x=2x12x64x64:float32"),
        ("nn.Conv3d(2, 8, 3)", "x=2x2x16x112x112:float32"),
        ("nn.ConvTranspose2d(100, 8, 4)", "x=2x100x1x1:float32"),
        ("nn.Embedding(500, 8)", "x=2x128:int64[0,500]"),
        ("nn.EmbeddingBag(500, 8)", "x=2x16:int64[0,500]"),
        ("nn.LSTM(6, 8, batch_first=True)", "x=2x32x6:float32"),
        ("nn.GRU(6, 8)", "x=32x2x6:float32"),
        ("nn.LSTMCell(6, 8)", "x=2x6:float32"),
        ("nn.TransformerEncoderLayer(16, 2, batch_first=True)", "x=2x128x16:float32"),
        ("nn.TransformerEncoderLayer(16, 2)", "x=128x2x16:float32"),
        ("nn.LayerNorm([4, 8])", "x=2x16x4x8:float32"),
        ("nn.BatchNorm1d(7)", "x=2x7:float32"),
        ("nn.BatchNorm2d(7)", "x=2x7x32x32:float32"),
        ("nn.GroupNorm(1, 6)", "x=2x6x32x32:float32"),
        ("nn.Sequential(nn.ReLU(), nn.Dropout(), nn.Linear(9, 1))", "x=2x9:float32"),
        ("nn.Sequential(nn.Flatten(), nn.Linear(784, 1))", "x=2x784:float32"),
        ("nn.LazyLinear(4)", "x=2x16:float32"),
    ],
)
def test_by_the_first_layer(project: Project, layer: str, expected: str) -> None:
    assert spec(project, net(f"self.layer = {layer}", "x", "return self.layer(x)")) == expected


@pytest.mark.parametrize(
    ("size", "channels"), [(32, 1), (28, 1), (32, 3), (224, 3), (64, 3), (84, 4)]
)
def test_the_image_size_that_a_flattened_layer_needs(
    project: Project, size: int, channels: int
) -> None:
    features = 4 * (size - 2) ** 2
    text = net(
        f"self.c = nn.Conv2d({channels}, 4, 3); self.f = nn.Linear({features}, 2)",
        "x",
        "return self.f(self.c(x).flatten(1))",
    )
    assert spec(project, text) == f"x=2x{channels}x{size}x{size}:float32"


def test_an_image_size_that_is_nowhere_named(project: Project) -> None:
    text = net(
        "self.c = nn.Conv2d(3, 4, 3); self.f = nn.Linear(4 * 75 * 75, 2)",
        "x",
        "return self.f(self.c(x).flatten(1))",
    )
    assert spec(project, text) == "x=2x3x77x77:float32"


def test_a_reshape_that_would_turn_wrong_sizes_into_more_samples(project: Project) -> None:
    text = net(
        "self.c = nn.Conv2d(3, 4, 3, padding=1); self.f = nn.Linear(4 * 32 * 32, 2)",
        "x",
        "return self.f(self.c(x).view(-1, 4 * 32 * 32))",
    )
    assert spec(project, text) == "x=2x3x32x32:float32"


@pytest.mark.parametrize(
    ("before", "args", "expected"),
    [
        ("IMAGE_SIZE = 48", "", 48),
        ("", ", img_size=80", 80),
        ("def data():\n    return torchvision.datasets.CIFAR10('.')", "", 32),
    ],
)
def test_image_sizes_that_the_file_speaks_of(
    project: Project, before: str, args: str, expected: int
) -> None:
    text = net("self.c = nn.Conv2d(3, 4, 3)", "x", "return self.c(x)", before, args)
    assert spec(project, text) == f"x=2x3x{expected}x{expected}:float32"


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("self.e = nn.Embedding(90, 8); self.block_size = 50", 50),
        ("self.e = nn.Embedding(90, 8); self.position = nn.Embedding(40, 8)", 40),
        ("self.e = nn.Embedding(90, 8); self.pos = nn.Parameter(torch.zeros(1, 30, 8))", 30),
        ("self.e = nn.Embedding(90, 8); self.config = dict(max_seq_len=20)", 20),
        ("self.e = nn.Embedding(90, 8)", 128),
    ],
)
def test_sequence_lengths(project: Project, init: str, expected: int) -> None:
    text = net(init, "ids", "return self.e(ids)")
    assert spec(project, text) == f"ids=2x{expected}:int64[0,90]"


@pytest.mark.parametrize(
    ("init", "params", "body", "expected"),
    [
        (
            "self.u = nn.Embedding(10, 4); self.i = nn.Embedding(20, 4)",
            "user_ids, item_ids",
            "return (self.u(user_ids) * self.i(item_ids)).sum(-1)",
            "user_ids=2:int64[0,10],item_ids=2:int64[0,20]",
        ),
        (
            "self.a = nn.Linear(3, 4); self.b = nn.Linear(5, 4)",
            "left, right",
            "return self.a(left) + self.b(right)",
            "left=2x3:float32,right=2x5:float32",
        ),
        (
            "self.c = nn.Conv2d(1, 4, 3); self.t = nn.Linear(1, 4)",
            "x, t",
            "return self.c(x) + self.t(t[:, None].float())[:, :, None, None]",
            "x=2x1x28x28:float32,t=2:int64[0,1000]",
        ),
        (
            "self.l = nn.Linear(6, 4)",
            "x, edge_index",
            "h = self.l(x); a, b = edge_index; return torch.zeros_like(h).index_add(0, b, h[a])",
            "x=16x6:float32,edge_index=2x40:int64[0,16]",
        ),
        (
            "self.e = nn.Embedding(9, 4); self.l = nn.LSTM(4, 5, 2, batch_first=True)",
            "x, hidden",
            "return self.l(self.e(x), hidden)",
            "x=2x32:int64[0,9],hidden=(2x2x5:float32,2x2x5:float32)",
        ),
        (
            "self.e = nn.Embedding(9, 4); self.l = nn.GRU(4, 5, batch_first=True)",
            "x, h",
            "return self.l(self.e(x), h)",
            "x=2x32:int64[0,9],h=1x2x5:float32",
        ),
        (
            "self.l = nn.Linear(3, 4)",
            "x, train: bool, power: float, times: int",
            "return self.l(x) ** power * times",
            "x=2x3:float32,train=False,power=float(1.0),times=int(1)",
        ),
        (
            "self.l = nn.Linear(3, 4)",
            "x, *, mask",
            "return self.l(x)[:, :1] * mask",
            "x=2x3:float32,mask=2x128:bool",
        ),
        (
            "self.e = nn.Embedding(9, 4); self.a = nn.MultiheadAttention(4, 1, batch_first=True)",
            "x, key_padding_mask",
            "x = self.e(x); return self.a(x, x, x, key_padding_mask=key_padding_mask)[0]",
            "x=2x128:int64[0,9],key_padding_mask=2x128:bool",
        ),
        (
            "self.e = nn.Embedding(9, 4); self.l = nn.LSTM(4, 5, batch_first=True)",
            "x, lengths",
            "return self.l(nn.utils.rnn.pack_padded_sequence(self.e(x), lengths, "
            "batch_first=True))[1][0]",
            "x=2x32:int64[0,9],lengths=2:int64[32,33]@cpu",
        ),
        (
            "self.l = nn.Linear(6, 4)",
            "x, y, t",
            "h = torch.cat([x, y, t], dim=1); return self.l(h)",
            "x=2x2:float32,y=2x2:float32,t=2x2:float32",
        ),
        (
            "self.e = nn.ModuleList([nn.Embedding(9, 4), nn.Embedding(8, 4)])",
            "fields",
            "return sum(e(fields[:, i]) for i, e in enumerate(self.e))",
            "fields=2x128:int64[0,9]",
        ),
        ("self.w = nn.Parameter(torch.zeros(7, 3))", "x", "return x @ self.w", "x=2x7:float32"),
        (
            "self.w = nn.Parameter(torch.zeros(7, 3))",
            "x",
            "return F.linear(x, self.w)",
            "x=2x3:float32",
        ),
        ("self.l = nn.Linear(5, 1)", "*inputs", "return self.l(inputs[0])", "2x5:float32"),
        ("self.l = nn.Linear(5, 1)", "x=None", "return self.l(x)", "x=2x5:float32"),
    ],
)
def test_by_signature_and_code(
    project: Project, init: str, params: str, body: str, expected: str
) -> None:
    assert spec(project, net(init, params, body)) == expected


def test_the_note_can_be_pasted(project: Project) -> None:
    text = net(
        "self.e = nn.Embedding(9, 4); self.l = nn.LSTM(4, 5, batch_first=True)",
        "x, hidden",
        "return self.l(self.e(x), hidden)",
    )
    inferred = spec(project, text)
    pasted = project.build("model.py:Net", inputs=inferred)
    assert [str(value.dtype) for value in (pasted.kwargs["x"], *pasted.kwargs["hidden"])] == [
        "torch.int64",
        "torch.float32",
        "torch.float32",
    ]


def test_optional_arguments_are_left_alone(project: Project) -> None:
    text = net("self.l = nn.Linear(5, 1)", "x, mask=None, scale=2.0", "return self.l(x) * scale")
    assert spec(project, text) == "x=2x5:float32"


LABELLED = net(
    "self.l = nn.Linear(5, 3)",
    "x, labels=None",
    "out = self.l(x); "
    "return (out, F.cross_entropy(out, labels)) if labels is not None else (out, None)",
)


def test_labels_are_given_when_only_they_yield_a_loss(project: Project) -> None:
    assert spec(project, LABELLED) == "x=2x5:float32,labels=2:int64[0,3]"
    subject = project.build("model.py:Net")
    assert note(subject, "loss") == "loss returned by the model: output[1]"


def test_labels_are_left_out_for_inference(project: Project) -> None:
    project.torch_file(LABELLED)
    subject = project.build("model.py:Net", mode="infer")
    assert note(subject, "inputs") == 'inputs inferred: --inputs "x=2x5:float32"'
    assert subject.loss is None


def test_labels_like_tokens_for_a_language_model(project: Project) -> None:
    text = net(
        "self.e = nn.Embedding(50, 8); self.h = nn.Linear(8, 50)",
        "ids, targets=None",
        "out = self.h(self.e(ids)); "
        "return out if targets is None else F.cross_entropy(out.view(-1, 50), targets.view(-1))",
    )
    assert spec(project, text) == "ids=2x128:int64[0,50],targets=2x128:int64[0,50]"


def test_what_the_file_s_step_passes_is_given(project: Project) -> None:
    text = net("self.l = nn.Linear(5, 1)", "x, scale=None, mask=None", "return self.l(x) * scale")
    step = "def train(model, x, s):\n    out = model(x, scale=s)\n    out.sum().backward()\n"
    assert spec(project, text + step) == "x=2x5:float32,scale=2x5:float32"


def test_no_inputs(project: Project) -> None:
    project.torch_file(net("self.w = nn.Parameter(torch.ones(3))", "", "return self.w.sum()"))
    subject = project.build("model.py:Net")
    assert (subject.args, subject.kwargs) == ((), {})
    assert subject.notes[0] == "forward() is called without inputs"


def test_a_forward_that_always_raises(project: Project) -> None:
    project.torch_file(net("self.l = nn.Linear(5, 1)", "x", "return self.l(x) + nothing"))
    with pytest.raises(LocateError) as caught:
        project.build("model.py:Net")
    assert caught.value.message.startswith(
        "Net: forward(x) raises for all inputs tried: model.py:9: NameError: name 'nothing'"
    )
    assert caught.value.remedy == (
        'mend the model, or give inputs that it takes: --inputs "x=2x5:float32"'
    )


def test_a_forward_that_takes_no_input_tried(project: Project) -> None:
    body = "assert x.shape[0] == 12345, x.shape; return x"
    project.torch_file(net("self.l = nn.Linear(5, 1)", "x", body))
    with pytest.raises(LocateError) as caught:
        project.build("model.py:Net")
    assert "no inputs could be inferred; the likeliest failed: model.py:9: AssertionError" in (
        caught.value.message
    )
    assert caught.value.remedy == 'give them, for example --inputs "x=2x5:float32"'


def test_a_forward_that_reads_values(project: Project) -> None:
    body = "return self.l(x) if x.sum() > 0 else self.l(-x)"
    project.torch_file(net("self.l = nn.Linear(5, 1)", "x", body))
    with pytest.raises(NeedsValues, match="cannot be checked on tensors without values"):
        project.build("model.py:Net")
    assert tuple(project.build_real("model.py:Net").args[0].shape) == (2, 5)


def test_trials_leave_buffers_and_random_state(project: Project) -> None:
    project.torch_file(net("self.b = nn.BatchNorm1d(5)", "x", "return self.b(x)"))
    subject = project.build_real("model.py:Net")
    assert subject.model.b.num_batches_tracked == 0
    assert subject.model.b.running_mean.tolist() == [0] * 5


def test_trials_leave_no_gradients(project: Project) -> None:
    project.torch_file(net("self.l = nn.Linear(5, 1)", "x", "return self.l(x)"))
    subject = project.build_real("model.py:Net")
    assert all(parameter.grad is None for parameter in subject.model.parameters())


def test_a_forward_that_differentiates_itself(project: Project) -> None:
    body = "x.requires_grad_(); y = self.l(x).sum(); return torch.autograd.grad(y, x)[0]"
    assert spec(project, net("self.l = nn.Linear(5, 1)", "x", body)) == "x=2x5:float32"
