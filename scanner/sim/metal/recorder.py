"""Events of one call, and the executors that make them happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from scanner.sim import trace
from scanner.sim.executors import (
    Answer,
    GraphExecutor,
    KernelSource,
    Launch,
    NotExecutable,
    PipelineLimits,
    ShaderExecutor,
)
from scanner.sim.graph import recording

__all__ = ["Recorder"]


class Recorder:
    """What the host code did since `begin`, in order."""

    def __init__(self, shaders: ShaderExecutor, graphs: GraphExecutor) -> None:
        self.shaders = shaders
        self.graphs = graphs
        self.events: list[trace.Event] = []
        self.refused: list[str] = []
        """Why something was not executed."""
        self.findings: list[str] = []
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.fallbacks: list[str] = []
        """Operators that were handed to the CPU."""
        self.routines: list[str] = []
        """LAPACK and BLAS routines that ran on the CPU."""
        self.runs: list[recording.GraphRun | recording.KernelRun] = []
        self._depth = 0
        self._path: list[str] = []

    def begin(self) -> None:
        """Forgets everything."""
        for kept in (self.events, self.refused, self.findings, self.warnings, self.fallbacks):
            kept.clear()
        self.runs.clear()
        self.notes.clear()
        self.routines.clear()
        self._path.clear()

    def path(self) -> trace.Outcome:
        """Where the results come from, if nothing is raised."""
        if self.fallbacks or self.routines:
            return "fallback"
        graph = any(isinstance(event, trace.GraphRun) for event in self.events)
        return "native-graph" if graph else "native-shader"

    def enter(self, op: str) -> None:
        """The dispatcher enters an operator."""
        self.events.append(trace.Dispatch(op=op, depth=len(self._path)))
        self._path.append(op)

    def leave(self) -> None:
        """The dispatcher leaves it."""
        if self._path:
            self._path.pop()

    def fallback(self) -> None:
        """The innermost operator is handed to the CPU."""
        self.fallbacks.append(self._path[-1] if self._path else "")

    def allocate(self, size: int) -> None:
        """Device memory is taken."""
        self.events.append(trace.Allocation(kind="allocate", nbytes=size))

    def free(self, size: int) -> None:
        """Device memory is given back."""
        self.events.append(trace.Allocation(kind="free", nbytes=size))

    def blit(self, kind: Any, size: int) -> None:
        """A copy or fill."""
        self.events.append(trace.Blit(kind=kind, nbytes=size))

    def commit(self) -> None:
        """A command buffer is committed."""
        self.events.append(trace.Commit(wait=False))

    def wait(self) -> None:
        """The CPU waits for the last command buffer."""
        for index in range(len(self.events) - 1, -1, -1):
            event = self.events[index]
            if isinstance(event, trace.Commit):
                if not event.wait:
                    self.events[index] = msgspec.structs.replace(event, wait=True)
                return
        self.events.append(trace.Commit(wait=True))

    def limits(self, kernel: KernelSource) -> PipelineLimits:
        """What the kernel says about its threadgroups."""
        return self.shaders.limits(kernel)

    def launch(self, launch: Launch) -> None:
        """A kernel is encoded, and run."""
        self.events.append(
            trace.Launch(
                kernel=launch.kernel.name,
                grid=launch.grid,
                threadgroup=launch.threadgroup,
                mode="threads" if launch.mode == "threads" else "threadgroups",
                bindings=launch.bindings,
            )
        )
        self._execute(lambda: self.shaders.run(launch))

    def graph(self, run: recording.GraphRun) -> None:
        """A graph is encoded, and run."""
        self.runs.append(run)
        self.events.append(trace.GraphRun(nodes=tuple(map(_node, run.graph.nodes))))
        self._execute(lambda: self.graphs.run(run))

    def kernel(self, run: recording.KernelRun) -> None:
        """A Metal Performance Shaders kernel is encoded, and run."""
        self.runs.append(run)
        node = trace.GraphNode(
            selector=f"[{run.kernel.name} {run.selector}]", inputs=(), outputs=()
        )
        self.events.append(trace.GraphRun(nodes=(node,)))
        self._execute(lambda: self.graphs.run_kernel(run))

    def infer(self, graph: recording.Graph, value: int) -> recording.TensorType | None:
        """Type of a value of a graph."""
        return self.graphs.infer(graph, value)

    def _execute(self, run: Callable[[], Answer]) -> None:
        answer = run()
        if isinstance(answer, NotExecutable):
            self.refused.append(answer.reason)
        elif not self.refused:
            # What runs after something that did not may read anything, indices among it.
            self.findings.extend(answer.findings)
            self.notes.extend(answer.notes)


def _node(node: recording.Node) -> trace.GraphNode:
    if isinstance(node, recording.Op):
        return trace.GraphNode(selector=node.selector, inputs=node.inputs, outputs=node.outputs)
    kind = "placeholder" if isinstance(node, recording.Placeholder) else "constant"
    return trace.GraphNode(selector=kind, inputs=(), outputs=(node.value,))
