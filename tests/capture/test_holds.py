"""Ops that MPS runs whole: shapes, values and gradients of the stand-in kernels."""

from __future__ import annotations

import importlib.resources
import re

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
import yaml
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from scanner.capture.holds import held
from scanner.capture.lowering import DENSE_ATTENTION, HOLDABLE, ONE_HOT
from scanner.capture.world import world
from scanner.locate.interface import Subject

from .conftest import ops


class _Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def _fused(x, weight):
    """The kernel itself, which MPS' branch of rms_norm avoids where a gradient is needed."""
    return torch.ops.aten._fused_rms_norm(x, [6], weight, 1e-5)[0]


def _gradients(function, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    result = function(*inputs)
    return result, torch.autograd.grad(result.sin().sum(), inputs)


@pytest.mark.parametrize(
    ("hold", "function", "shapes"),
    [
        ("linear", F.linear, [(2, 5, 4), (3, 4), (3,)]),
        ("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), [(2, 3, 9, 8)]),
        ("mish_backward", F.mish, [(4, 7)]),
        ("_fused_rms_norm", lambda x: F.rms_norm(x, (6,)), [(4, 6)]),
        ("_fused_rms_norm", lambda x, w: F.rms_norm(x, (6,), w, 1e-5), [(4, 6), (6,)]),
        ("_fused_rms_norm", lambda x, w: _fused(x, w), [(6,), (6,)]),
    ],
)
def test_held_ops_compute_the_same(hold, function, shapes):
    generator = torch.Generator().manual_seed(7)
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    expected, expected_gradients = _gradients(function, *inputs)
    with held(frozenset({f"aten::{hold}"})) as missing:
        assert missing == ()
        result, gradients = _gradients(function, *inputs)
    torch.testing.assert_close(result, expected)
    for got, want in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(got, want)


def test_holding_ends_with_the_context():
    x, weight = torch.ones(2, 4), torch.ones(3, 4)
    with held(frozenset({"aten::linear"})), _Names() as inside:
        F.linear(x, weight)
    with _Names() as outside:
        F.linear(x, weight)
    assert inside.seen == ["aten.linear.default"]
    assert "aten.linear.default" not in outside.seen


def test_an_op_the_running_torch_lacks_is_reported(monkeypatch):
    from scanner.capture.kernels import KERNELS

    monkeypatch.setitem(KERNELS, "aten::of_the_future", {"of_the_future": lambda x: x})
    with held(frozenset({"aten::of_the_future", "aten::linear"})) as missing:
        assert missing == ("aten::of_the_future",)


def test_a_recurrent_layer_is_one_op(capture):
    def build():
        return Subject(
            model=nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True),
            args=(torch.ones(4, 6, 3),),
            loss=lambda out: out[0].sum(),
        )

    graph = capture(build)
    lstm = next(call for call in graph.ops if call.op == "aten::_lstm_mps")
    assert [spec.shape for spec in lstm.outputs[:3]] == [(4, 6, 10), (4, 4, 5), (4, 4, 5)]
    assert ops(graph, "backward").count("aten::lstm_mps_backward") == 1
    assert not [op for op in ops(graph) if "sigmoid" in op or "tanh" in op]


def test_norm_is_one_kernel_with_a_weight_in_inference_only(capture):
    """`_fused_rms_norm_backward` has no MPS kernel, and the fused one needs a weight."""

    def build(affine):
        model = nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4, elementwise_affine=affine))
        return lambda: Subject(model=model, args=(torch.ones(2, 4),))

    for composed in (
        ops(capture(build(True))),
        ops(capture(build(False))),
        ops(capture(build(False), mode="infer")),
    ):
        assert not [op for op in composed if "rms_norm" in op]
        assert "aten::rsqrt" in composed
    assert "aten::_fused_rms_norm" in ops(capture(build(True), mode="infer"))


def test_attention_is_one_kernel_in_inference_only(capture):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(8, 8)

        def forward(self, x):
            q = self.project(x)
            return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    def build():
        return Subject(model=Model(), args=(torch.ones(2, 3, 5, 8),))

    whole = "aten::_scaled_dot_product_attention_math_for_mps"
    assert whole in ops(capture(build, mode="infer"))
    trained = ops(capture(build, mode="train"))
    assert whole not in trained
    assert "aten::_safe_softmax" in trained
    assert not [op for op in trained if "_for_cpu" in op]


@pytest.mark.parametrize("strided", [True, False])
def test_attention_of_strided_tensors_is_composed_where_the_kernel_wants_dense_ones(
    capture, strided
):
    def model(x):
        q = x.transpose(1, 2) if strided else x
        return F.scaled_dot_product_attention(q, q, q)

    def build():
        return Subject(model=model, args=(torch.ones(2, 3, 5, 8),))

    whole = "aten::_scaled_dot_product_attention_math_for_mps"
    assert whole in ops(capture(build, mode="infer"))
    older = ops(capture(build, mode="infer", holds=HOLDABLE | {DENSE_ATTENTION}))
    assert (whole in older) is not strided
    assert ("aten::bmm" in older) is strided


@pytest.mark.parametrize("unchecked", [True, False])
def test_one_hot_checks_its_indices_from_2_12_on(capture, unchecked):
    graph = capture(
        lambda: Subject(
            model=lambda ids: F.one_hot(ids, 7), args=(torch.zeros(3, dtype=torch.long),)
        ),
        mode="infer",
        holds=frozenset({ONE_HOT}) if unchecked else frozenset(),
    )
    assert ops(graph)[-2:] == ["aten::unsqueeze", "aten::scatter_.value"]
    assert ("aten::aminmax" in ops(graph)) is not unchecked


def test_dropout_is_one_op_where_the_release_says_so(capture):
    def build():
        return Subject(
            model=nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), args=(torch.ones(2, 4),)
        )

    assert "aten::native_dropout" in ops(capture(build), "forward")
    older = ops(capture(build, holds=HOLDABLE), "forward")
    assert "aten::native_dropout" not in older
    assert "aten::bernoulli_.float" in older


def test_ctc_loss_reads_lengths_on_the_host(capture):
    def build():
        scores = torch.zeros(12, 2, 5, requires_grad=True).log_softmax(-1)
        labels = torch.ones(2, 3, dtype=torch.long)
        lengths = (torch.full((2,), 12), torch.full((2,), 3))
        return Subject(model=lambda s: F.ctc_loss(s, labels, *lengths), args=(scores,))

    graph = capture(build, mode="infer")
    loss = next(call for call in graph.ops if call.op == "aten::_ctc_loss")
    assert loss.attributes["input_lengths"] == [12, 12]
    assert loss.attributes["target_lengths"] == [3, 3]


def test_every_composite_with_an_mps_kernel_is_known():
    """Re-derived from the installed torch's own native_functions.yaml."""
    path = importlib.resources.files("torchgen") / "packaged/ATen/native/native_functions.yaml"
    entries = yaml.load(path.read_text(), yaml.CSafeLoader)
    composites = set()
    for entry in entries:
        keys = {key.strip() for group in entry.get("dispatch", {}) for key in group.split(",")}
        if {"MPS", "CompositeImplicitAutograd"} <= keys:
            composites.add("aten::" + re.match(r"[\w.]+", entry["func"])[0])
    assert composites
    assert composites <= HOLDABLE


def test_world_restores_what_it_changes():
    mkldnn = torch._C._get_mkldnn_enabled()
    with world("meta"):
        assert torch.backends.mps.is_available()
        assert torch.zeros(2).device.type == "mps"
    assert not torch.backends.mps.is_available()
    assert torch.zeros(2).device.type == "cpu"
    assert torch._C._get_mkldnn_enabled() == mkldnn
