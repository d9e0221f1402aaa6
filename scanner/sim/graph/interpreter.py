"""Runs recorded graphs with torch on the CPU.

Only what the results need is computed, node after node. What a release feeds is read from host
memory by address, before anything is written. Rounding is torch's, not Apple's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial

import torch
from torch import Tensor

from scanner.sim.executors import Answer, Done, NotExecutable
from scanner.sim.graph import kernels, memory
from scanner.sim.graph.casts import filled
from scanner.sim.graph.methods import Method, Unsupported, dtype_named
from scanner.sim.graph.nodes import Evaluator
from scanner.sim.graph.ops import all_methods
from scanner.sim.graph.recording import (
    Constant,
    Graph,
    GraphRun,
    KernelRun,
    Placeholder,
    TensorType,
)

__all__ = ["Interpreter"]


class Interpreter:
    """A graph executor. Stateless; one may serve many sessions."""

    @cached_property
    def _methods(self) -> Mapping[str, Method]:
        return all_methods()

    def infer(self, graph: Graph, value: int) -> TensorType | None:
        """Type of a value, from the shapes of placeholders; None where they do not tell it.

        Nodes run on tensors without content; where that is not possible, on zeros.
        """
        for device in ("meta", "cpu"):
            evaluator = Evaluator(self._methods, partial(_blank, device))
            try:
                with torch.inference_mode():
                    found = evaluator.values(graph, (value,))[value]
            except Unsupported:
                continue
            return TensorType(tuple(found.shape), str(found.dtype).removeprefix("torch."))
        return None

    def run(self, run: GraphRun) -> Answer:
        """Computes the results from the feeds."""
        return _guarded(lambda: self._run(run))

    def run_kernel(self, run: KernelRun) -> Answer:
        """Computes what one kernel writes."""
        return _guarded(lambda: kernels.run(run))

    def _run(self, run: GraphRun) -> None:
        fed = dict(run.feeds)

        def source(node: Placeholder | Constant) -> Tensor:
            if isinstance(node, Constant):
                return _constant(node)
            if node.value not in fed:
                raise Unsupported(f"the placeholder {node.name or node.value} is not fed")
            return memory.read(fed[node.value])

        wanted = tuple(value for value, _ in run.results)
        values = Evaluator(self._methods, source).values(run.graph, wanted)
        for value, destination in run.results:
            memory.write(destination, values[value])


def _guarded(work: Callable[[], None]) -> Answer:
    try:
        with torch.inference_mode():
            work()
    except Unsupported as error:
        return NotExecutable(str(error))
    except Exception as error:  # an executor never raises
        return NotExecutable(f"the graph interpreter failed: {type(error).__name__}: {error}")
    return Done()


def _constant(node: Constant) -> Tensor:
    dtype, shape = dtype_named(node.type.dtype), node.type.shape or ()
    if node.data is None:
        return filled(shape, node.scalar or 0.0, dtype)
    if not node.data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(node.data), dtype=dtype).reshape(shape)


def _blank(device: str, node: Placeholder | Constant) -> Tensor:
    """What stands for a source while types are inferred."""
    if isinstance(node, Constant):
        return _constant(node).to(device)
    shape = node.type.shape
    if shape is None or min(shape, default=0) < 0:
        raise Unsupported(f"the shape of {node.name or node.value} is not known before it is fed")
    return torch.zeros((), dtype=dtype_named(node.type.dtype), device=device).expand(shape)
