"""An `OpGraph` as a `torch.fx.Graph`, for tools that speak fx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from scanner.records import OpCall, OpGraph, Step

__all__ = ["to_fx"]


def to_fx(graph: OpGraph) -> fx.Graph:
    """One `call_function` node for each executed call, in order.

    A tensor argument is the node that last wrote its storage, or a placeholder named for the
    storage's role. `node.meta` holds `op` (the `OpCall`), `phase`, `location` and `module`.
    """
    result = fx.Graph()
    written = {
        value: result.placeholder(f"{graph.values[value].role}_{value}")
        for value in _read_first(graph)
    }
    for step in graph.steps:
        call = graph.ops[step.op]
        reads = tuple(written[value] for value in step.reads)
        node = result.call_function(_target(call.op), reads, {})
        node.meta.update(_meta(call, step))
        written.update(dict.fromkeys(step.writes, node))
    result.output(None)
    return result


def _read_first(graph: OpGraph) -> Iterator[int]:
    """Storages that existed before the first op that touches them."""
    seen: set[int] = set()
    for step in graph.steps:
        yield from (value for value in dict.fromkeys(step.reads) if value not in seen)
        seen.update(step.reads, step.writes)


def _target(op: str) -> Any:
    """The overload itself, or its name where the running torch does not know it."""
    namespace, _, name = op.partition("::")
    packet, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops, namespace), packet, None)
    return getattr(found, overload or "default", None) or _named(op)


def _named(op: str) -> Any:
    def absent(*_args: Any) -> Any:
        raise NotImplementedError(f"{op} is not an operator of torch {torch.__version__}")

    absent.__name__ = op.replace("::", "_").replace(".", "_")
    return absent


def _meta(call: OpCall, step: Step) -> dict[str, Any]:
    location = call.locations[step.location] if step.location >= 0 else None
    return {
        "op": call,
        "phase": call.phase,
        "location": location,
        "module": location.module if location else "",
    }
