"""Convolutions, which pick the MPS kernel below the dispatcher."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from scanner.capture.graph import merged
from scanner.capture.lowering import HOLDABLE, lower
from scanner.locate.interface import Subject
from scanner.records import Location, OpCall, TensorSpec


def _call(graph, op):
    return next(call for call in graph.ops if call.op == op)


def test_two_dimensional(capture):
    graph = capture(
        lambda: Subject(model=nn.Conv2d(3, 8, 3, padding=1), args=(torch.ones(2, 3, 9, 9),))
    )
    forward = _call(graph, "aten::_mps_convolution")
    assert forward.via == "aten::convolution"
    assert [spec.name for spec in forward.inputs] == ["self", "weight", "bias"]
    assert forward.attributes == {
        "padding": [1, 1],
        "stride": [1, 1],
        "dilation": [1, 1],
        "groups": 1,
    }
    backward = _call(graph, "aten::mps_convolution_backward")
    assert [spec.name for spec in backward.inputs] == ["self", "grad_output", "weight"]
    assert [spec.shape for spec in backward.inputs] == [(2, 3, 9, 9), (2, 8, 9, 9), (8, 3, 3, 3)]
    assert backward.attributes["output_mask"] == [False, True, True]


def test_one_dimensional_runs_as_two_dimensional(capture):
    graph = capture(
        lambda: Subject(model=nn.Conv1d(3, 8, 5, stride=2), args=(torch.ones(2, 3, 21),))
    )
    forward = _call(graph, "aten::_mps_convolution")
    image, weight, bias = forward.inputs
    assert (image.shape, image.stride) == ((2, 3, 1, 21), (63, 21, 21, 1))
    assert weight.shape == (8, 3, 1, 5)
    assert bias.shape == (8,)
    assert forward.attributes["stride"] == [1, 2]
    assert forward.attributes["padding"] == [0, 0]
    assert forward.outputs[0].shape == (2, 8, 1, 9)


def test_transposed_has_no_bias_operand(capture):
    graph = capture(
        lambda: Subject(model=nn.ConvTranspose2d(3, 8, 2, stride=2), args=(torch.ones(2, 3, 4, 4),))
    )
    forward = _call(graph, "aten::_mps_convolution_transpose")
    assert [spec.name for spec in forward.inputs] == ["self", "weight"]
    assert forward.attributes["output_padding"] == [0, 0]
    backward = _call(graph, "aten::mps_convolution_transpose_backward")
    assert backward.attributes["output_mask"] == [False, True]


def test_other_ops_are_left_alone():
    spec = TensorSpec(name="self", dtype="float32", shape=(2,), stride=(1,))
    call = OpCall(op="aten::exp", phase="forward", inputs=(spec,))
    assert lower(call, HOLDABLE) is call


_SPECS = st.builds(
    TensorSpec,
    name=st.just("self"),
    dtype=st.sampled_from(["float32", "int64"]),
    shape=st.just((2,)),
    stride=st.just((1,)),
)
_CALLS = st.builds(
    OpCall,
    op=st.sampled_from(["aten::a", "aten::b"]),
    phase=st.sampled_from(["forward", "backward"]),
    inputs=st.tuples(_SPECS),
    calls=st.integers(1, 5),
    locations=st.lists(
        st.builds(Location, file=st.just("f.py"), line=st.integers(1, 3)), unique=True, max_size=3
    ).map(tuple),
)


@given(st.lists(_CALLS, max_size=12))
def test_merging_loses_no_call_and_no_place(calls):
    rows, index, places = merged(calls)
    assert sum(row.calls for row in rows) == sum(call.calls for call in calls)
    assert len({(row.op, row.phase, row.inputs) for row in rows}) == len(rows)
    for call, row, moved in zip(calls, index, places, strict=True):
        assert rows[row].op == call.op
        assert [rows[row].locations[i] for i in moved] == list(call.locations)
