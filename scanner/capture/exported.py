"""The last rung: the forward pass as torch.export sees it, when no step could be run."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import torch
from torch import Tensor, fx

from scanner.capture import describe
from scanner.capture.graph import merged
from scanner.capture.lowering import lower
from scanner.locate.interface import Subject
from scanner.records import Capture, OpCall, OpGraph, TensorSpec, Unseen

__all__ = ["export_graph", "to_calls"]


def export_graph(
    subject: Subject, *, notes: tuple[str, ...], holds: tuple[str, ...], **about: Any
) -> OpGraph:
    """Exports the forward pass without running it; raises what torch.export raises."""
    program = torch.export.export(subject.model, subject.args, dict(subject.kwargs), strict=False)
    kept = frozenset(holds)
    ops, _, _ = merged(lower(call, kept) for call in to_calls(program.graph))
    return OpGraph(
        mode="infer",
        holds=tuple(sorted(holds)),
        capture=Capture(
            method="export",
            complete=False,
            notes=(*subject.notes, *notes),
            unseen=(
                Unseen(what="loss, backward and optimizer", reason="no step could be run"),
                Unseen(what="source lines", reason="an exported graph has none of the user's"),
            ),
        ),
        ops=ops,
        **about,
    )


def to_calls(graph: fx.Graph) -> Iterator[OpCall]:
    """One call for each ATen node of a graph whose nodes carry `meta["val"]`."""
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            yield _call(node)
        elif node.op == "call_function" and node.target is not operator.getitem:
            yield OpCall(op=f"python::{node.target}", phase="forward", inputs=())


def _call(node: fx.Node) -> OpCall:
    arguments = describe.schema_arguments(node.target, node.args, node.kwargs)
    named = {name: list(_specs(name, value)) for name, value in arguments.items()}
    return OpCall(
        op=describe.op_name(node.target),
        phase="forward",
        inputs=tuple(spec for specs in named.values() for spec in specs),
        outputs=tuple(_numbered(_specs("", node))),
        attributes={
            name: describe.attribute(value) for name, value in arguments.items() if not named[name]
        },
    )


def _specs(name: str, value: Any) -> Iterator[TensorSpec]:
    if isinstance(value, fx.Node):
        value = value.meta.get("val")
    elif isinstance(value, list | tuple):
        value = [v.meta.get("val") if isinstance(v, fx.Node) else v for v in value]
    for key, tensor in describe.tensors_in(name, value):
        if isinstance(tensor, Tensor):
            yield describe.tensor_spec(key, tensor, host=False, alias=None)


def _numbered(specs: Iterable[TensorSpec]) -> Iterator[TensorSpec]:
    for index, spec in enumerate(specs):
        yield msgspec.structs.replace(spec, name=str(index))
