"""Computes the values of a graph, each when something needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from scanner.sim.graph.casts import cast
from scanner.sim.graph.methods import Arguments, Method, Unsupported
from scanner.sim.graph.recording import Constant, Graph, Node, Op, Placeholder

__all__ = ["Evaluator"]

_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    torch.uint16: torch.int64,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
}
"""Types for which torch lacks kernels, and one that holds (the bits of) their values."""

Values = Mapping[int, Tensor]


class Evaluator:
    """Gives nodes their values."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        source: Callable[[Placeholder | Constant], Tensor],
    ) -> None:
        """`source` gives placeholders and constants their content."""
        self._methods = methods
        self._source = source

    def values(self, graph: Graph, wanted: Iterable[int]) -> Values:
        """The wanted values and those they need. Raises Unsupported, naming the selector."""
        wanted = tuple(wanted)
        found: dict[int, Tensor] = {}
        for node in _needed(graph, wanted):
            if isinstance(node, Op):
                found.update(zip(node.outputs, self._compute(node, found), strict=True))
            else:
                found[node.value] = self._source(node)
        missing = [value for value in wanted if value not in found]
        if missing:
            raise Unsupported(f"the graph has no value {missing[0]}")
        return found

    def _compute(self, op: Op, values: Values) -> tuple[Tensor, ...]:
        method = self._methods.get(op.selector)
        if method is None:
            raise Unsupported(f"MPSGraph's {op.selector} is not modelled")
        try:
            outputs = _called(method, op, values)
        except Unsupported as error:
            raise Unsupported(f"{op.selector} {error}") from error
        except Exception as error:
            raise Unsupported(f"{op.selector} {type(error).__name__}: {error}") from error
        if len(outputs) != len(op.outputs):
            raise Unsupported(f"{op.selector} {len(outputs)} outputs for {len(op.outputs)}")
        return outputs


def _called(method: Method, op: Op, values: Values) -> tuple[Tensor, ...]:
    """The method's outputs, by way of wider types where torch lacks a kernel."""
    try:
        return _tuple(method(Arguments(op, values)))
    except (RuntimeError, TypeError):
        narrow = {values[value].dtype for value in op.inputs} & _WIDER.keys()
        if not narrow:
            raise
    operands = {value: _widened(values[value]) for value in op.inputs}
    back = {_WIDER[dtype]: dtype for dtype in narrow}
    given = {values[value].dtype for value in op.inputs}
    outputs = _tuple(method(Arguments(op, operands)))
    return tuple(
        tensor if tensor.dtype in given else cast(tensor, back.get(tensor.dtype, tensor.dtype))
        for tensor in outputs
    )


def _widened(tensor: Tensor) -> Tensor:
    return tensor.to(_WIDER.get(tensor.dtype, tensor.dtype))


def _tuple(outputs: object) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)  # type: ignore[arg-type]


def _needed(graph: Graph, wanted: Iterable[int]) -> list[Node]:
    """Nodes that the wanted values depend on, in order."""
    needed = set(wanted)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        outputs = node.outputs if isinstance(node, Op) else (node.value,)
        if needed.isdisjoint(outputs):
            continue
        kept.append(node)
        if isinstance(node, Op):
            needed.update(node.inputs)
    return kept[::-1]
