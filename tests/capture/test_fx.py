"""A captured graph as torch.fx."""

from __future__ import annotations

import msgspec
import torch
from torch import nn

from scanner.capture.fx import to_fx
from scanner.locate.interface import Subject
from scanner.records import OpGraph


def _graph(capture):
    model = nn.Linear(4, 2)
    return capture(lambda: Subject(model=model, args=(torch.ones(3, 4),), loss=torch.sum))


def test_every_call_is_a_node(capture):
    graph = _graph(capture)
    fx = to_fx(graph)
    fx.lint()
    nodes = [node for node in fx.nodes if node.op == "call_function"]
    assert len(nodes) == len(graph.steps) == sum(call.calls for call in graph.ops)
    assert nodes[0].target is torch.ops.aten.linear.default
    assert [arg.name for arg in nodes[0].args] == ["input_2", "parameter_0", "parameter_1"]
    assert nodes[0].meta["phase"] == "forward"
    assert nodes[1].args == (nodes[0],)


def test_a_graph_survives_json(capture):
    graph = _graph(capture)
    assert msgspec.json.decode(msgspec.json.encode(graph), type=OpGraph) == graph
