"""What one step of small models dispatches, derived by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from scanner.locate.interface import Subject

from .conftest import ops


def _line(marker: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, text in enumerate(lines, 1) if text.endswith(f"# {marker}"))


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x):
        hidden = self.first(x)  # first layer
        return self.second(F.relu(hidden))


def _trained():
    model = TwoLayers()
    return Subject(
        model=model,
        args=(torch.randn(5, 4),),
        loss=lambda out: out.pow(2).mean(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    )


def test_phases_in_order(capture):
    graph = capture(_trained)
    assert ops(graph, "forward") == ["aten::linear", "aten::relu", "aten::linear"]
    assert ops(graph, "loss") == ["aten::pow.Tensor_Scalar", "aten::mean"]
    assert ops(graph, "optimizer") == ["aten::add_.Tensor"] * 4
    assert ops(graph, "backward").count("aten::linear_backward") == 2
    assert "aten::threshold_backward" in ops(graph, "backward")


def test_nothing_is_decomposed_that_mps_runs_whole(capture):
    graph = capture(_trained)
    assert not {"aten::addmm", "aten::t", "aten::mm"} & set(ops(graph))


def test_a_release_without_a_kernel_decomposes(capture):
    graph = capture(_trained, holds=frozenset())
    assert "aten::addmm" in ops(graph, "forward")
    assert "aten::linear" not in ops(graph)


def test_backward_ops_point_at_the_forward_line(capture):
    graph = capture(_trained)
    first = next(
        call
        for call in graph.ops
        if call.op == "aten::linear_backward" and call.inputs[0].shape == (5, 4)
    )
    (place,) = first.locations
    assert place.line == _line("first layer")
    assert place.code.startswith("hidden = self.first(x)")
    assert place.module == "first"
    assert place.file == "tests/capture/test_step.py"


def test_configurations_are_merged_and_counted(capture):
    def build():
        layer = nn.Linear(4, 4)
        return Subject(model=nn.Sequential(layer, layer, layer), args=(torch.randn(2, 4),))

    graph = capture(build, mode="infer")
    (call,) = (call for call in graph.ops if call.op == "aten::linear")
    assert call.calls == 3
    assert [spec.name for spec in call.inputs] == ["input", "weight", "bias"]


def test_one_and_true_are_different_arguments(capture):
    class Model(nn.Module):
        def forward(self, x):
            return x.add(1), x.add(True), x.add(1.0)

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(2),)), mode="infer")
    adds = [call.attributes["other"] for call in graph.ops if call.op == "aten::add.Tensor"]
    assert [repr(other) for other in adds] == ["1", "True", "1.0"]


def test_layout_is_kept(capture):
    class Model(nn.Module):
        def forward(self, x):
            base = x.t()[1:]
            return base.exp(), torch.add(x, x)

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(3, 5),)), mode="infer")
    exp = next(call for call in graph.ops if call.op == "aten::exp")
    (spec,) = exp.inputs
    assert (spec.shape, spec.stride, spec.offset) == ((4, 3), (1, 5), 1)
    add = next(call for call in graph.ops if call.op == "aten::add.Tensor")
    assert [spec.alias for spec in add.inputs] == [None, 0]


def test_optimizer_counters_stay_on_the_host(capture):
    def build():
        model = nn.Linear(2, 2)
        optimizer = torch.optim.AdamW(model.parameters())
        return Subject(model=model, args=(torch.ones(1, 2),), loss=torch.sum, optimizer=optimizer)

    graph = capture(build)
    counters = [
        call
        for call in graph.ops
        if call.phase == "optimizer" and call.inputs and call.inputs[0].device == "cpu"
    ]
    assert {call.op for call in counters} >= {"aten::add_.Tensor", "aten::_local_scalar_dense"}
    assert all(spec.shape == () for call in counters for spec in call.inputs)
    (addcdiv,) = {call.op for call in graph.ops if "addcdiv" in call.op}
    assert addcdiv == "aten::addcdiv_"


def test_clipping_uses_the_kernels_that_mps_has(capture):
    """Foreach kernels are a choice by device: the CPU would use them, MPS of 2.13 does not."""

    def build():
        model = nn.Linear(2, 2)

        def clip():
            return nn.utils.clip_grad_norm_(model.parameters(), 1.0)

        return Subject(model=model, args=(torch.ones(1, 2),), loss=torch.sum, clip=clip)

    graph = capture(build)
    assert "aten::linalg_vector_norm" in ops(graph, "optimizer")
    assert not [op for op in ops(graph) if "_foreach" in op]


def test_copies_to_the_host_are_seen_and_end_the_device_part(capture):
    class Model(nn.Module):
        def forward(self, x):
            kept = x.exp().cpu()
            return kept.sin(), kept.device.type, x.device.type

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(2),)), mode="infer")
    where = {call.op: [spec.device for spec in call.inputs] for call in graph.ops}
    assert where["aten::_to_copy"] == ["target"]
    assert where["aten::sin"] == ["cpu"]


def test_the_model_believes_in_the_gpu(capture):
    class Model(nn.Module):
        def forward(self, x):
            assert torch.backends.mps.is_available()
            assert not torch.cuda.is_available()
            assert x.device == torch.device("mps:0")
            assert x.is_mps
            assert x.to("mps") is x
            assert torch.zeros(1, device="mps").device.type == "mps"
            return x * 2

    graph = capture(lambda: Subject(model=Model(), args=(torch.ones(2),)), mode="infer")
    assert ops(graph)[-1] == "aten::mul.Tensor"


def test_cuda_is_refused_as_on_a_mac(capture):
    from .conftest import climbed

    class Model(nn.Module):
        def forward(self, x):
            return x.cuda()

    failed = climbed(lambda: Subject(model=Model(), args=(torch.ones(2),)))[-1]
    assert "Torch not compiled with CUDA enabled" in failed.message
    assert [attempt.method for attempt in failed.attempts] == ["meta", "fake", "real"]


@pytest.mark.parametrize(
    ("forward", "method"),
    [
        (lambda x: x * 2, "meta"),
        (lambda x: x * torch.tensor([2.0, 3.0]).max().item(), "real"),
        (lambda x: x[x > 0], "real"),
        (lambda x: x + 1 if x.sum() > 0 else x, "real"),
    ],
)
def test_the_ladder_climbs_only_as_far_as_needed(capture, forward, method):
    graph = capture(lambda: Subject(model=forward, args=(torch.ones(2),)), mode="infer")
    assert graph.capture.method == method
    assert (
        len([n for n in graph.capture.notes if "capture failed" in n])
        == {"meta": 0, "real": 2}[method]
    )


def test_initial_values_do_not_matter(capture):
    def build():
        layer = nn.Linear(4, 4)
        nn.init.trunc_normal_(layer.weight, std=0.02)
        return Subject(model=layer, args=(torch.ones(2, 4),))

    assert capture(build).capture.method == "meta"


def test_an_optimizer_that_keeps_state_from_the_start(capture):
    def build():
        model = nn.Linear(2, 2)
        optimizer = torch.optim.Adagrad(model.parameters())
        return Subject(model=model, args=(torch.ones(1, 2),), loss=torch.sum, optimizer=optimizer)

    graph = capture(build)
    assert graph.capture.method == "meta"
    counters = [call for call in graph.ops if call.op == "aten::_local_scalar_dense"]
    assert counters
    assert all(spec.device == "cpu" for call in counters for spec in call.inputs)


def test_a_scan_without_a_loss_says_so(capture):
    graph = capture(lambda: Subject(model=nn.Linear(2, 2), args=(torch.ones(1, 2),)))
    assert graph.mode == "train"
    assert ops(graph, "loss") == []
    assert any("no loss was found" in note for note in graph.capture.notes)
    assert any("no optimizer" in note for note in graph.capture.notes)


def test_a_loss_that_is_no_scalar_is_an_error():
    from .conftest import climbed

    model = nn.Linear(2, 2)
    failed = climbed(lambda: Subject(model=model, args=(torch.ones(1, 2),), loss=lambda out: out))[
        -1
    ]
    assert "the loss is a tensor of shape (1, 2)" in failed.message


def test_values_are_named_by_role(capture):
    graph = capture(_trained)
    roles = [value.role for value in graph.values]
    assert roles.count("parameter") == 4
    assert roles.count("input") == 1
    weight = next(v for v in graph.values if v.role == "parameter")
    assert weight.nbytes == 8 * 4 * 4


def test_user_hooks_and_autocast_are_not_silently_ignored(capture):
    graph = capture(
        lambda: Subject(model=nn.Linear(2, 2), args=(torch.ones(1, 2),), autocast="float16")
    )
    assert not graph.capture.complete
    assert [unseen.what for unseen in graph.capture.unseen] == ["autocast to float16"]
