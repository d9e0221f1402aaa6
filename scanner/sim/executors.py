"""Who executes what the host code hands to the GPU.

The host side only records; it calls these protocols at once, in order, so that host code which
reads a result back sees it. An executor answers `Done`, or `NotExecutable` with the reason, and
must not raise or crash for anything a release's code can ask for.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from scanner.sim import trace
from scanner.sim.graph import recording
from scanner.sim.shaders.functions.interface import Direction

__all__ = [
    "Answer",
    "Done",
    "GraphExecutor",
    "KernelSource",
    "Launch",
    "NoGraphs",
    "NoShaders",
    "NotExecutable",
    "PipelineLimits",
    "ShaderExecutor",
]


class Done(msgspec.Struct, frozen=True):
    """Executed; the results are in memory."""

    findings: tuple[str, ...] = ()
    """What went wrong on the way: `writes 4 bytes past buffer 0`, …"""
    notes: tuple[str, ...] = ()
    """What went well only because a buffer is longer than what was asked for."""


class NotExecutable(msgspec.Struct, frozen=True):
    """Not executed; the destination's content is undefined."""

    reason: str


Answer = Done | NotExecutable


class KernelSource(msgspec.Struct, frozen=True):
    """Which function of which library a pipeline runs."""

    name: str
    library: str = ""
    """Section of the bundled library (`metal_basic`, `metal_40`); empty with a source text."""
    source: str | None = None
    """Metal source text when the library is compiled at run time."""
    constants: tuple[tuple[int, str, Any], ...] = ()
    """Function constants: index, Metal type (`bool`, `uint`, …), value."""


class Launch(msgspec.Struct, frozen=True):
    """A kernel to run now.

    Bindings hold host addresses, also for `bytes`, which are copied to memory of their own.
    Bindings of earlier kernels of the same encoder stay, as in Metal: only the indices that the
    kernel declares matter. Addresses stored inside buffers (argument buffers, `gpuAddress`) are
    host addresses too.
    """

    kernel: KernelSource
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    mode: str
    """`threads` (grid counts threads) or `threadgroups`."""
    bindings: tuple[trace.Binding, ...]


class PipelineLimits(msgspec.Struct, frozen=True):
    """What the kernel itself says about its threadgroups."""

    max_threads: int | None = None
    """`max_total_threads_per_threadgroup` of the kernel, None when it sets none."""
    static_memory: int = 0
    """Bytes of threadgroup memory that the kernel declares."""


class ShaderExecutor(Protocol):
    """Runs kernels."""

    direction: Direction
    """Where in their allowed error approximate functions end, from the next launch on."""

    def close(self) -> None:
        """Gives back what the executor holds; it is not used afterwards."""

    def limits(self, kernel: KernelSource) -> PipelineLimits:
        """What a pipeline of this kernel would report."""

    def run(self, launch: Launch) -> Answer:
        """Runs one kernel over its whole grid."""


class GraphExecutor(Protocol):
    """Runs graphs and Metal Performance Shaders kernels."""

    def infer(self, graph: recording.Graph, value: int) -> recording.TensorType | None:
        """Type of a value, when host code asks for it before the graph runs; None if unknown."""

    def run(self, run: recording.GraphRun) -> Answer:
        """Computes the results from the feeds."""

    def run_kernel(self, run: recording.KernelRun) -> Answer:
        """Computes what one kernel writes."""


class NoShaders:
    """Executes nothing."""

    direction: Direction = "nearest"

    def close(self) -> None:
        """Holds nothing."""

    def limits(self, kernel: KernelSource) -> PipelineLimits:
        """Nothing is known of the kernel."""
        del kernel
        return PipelineLimits()

    def run(self, launch: Launch) -> Answer:
        """Refuses."""
        return NotExecutable(f"no shader executor for {launch.kernel.name}")


class NoGraphs:
    """Interprets nothing."""

    def infer(self, graph: recording.Graph, value: int) -> recording.TensorType | None:
        """Nothing is known."""
        del graph, value
        return None

    def run(self, run: recording.GraphRun) -> Answer:
        """Refuses."""
        del run
        return NotExecutable("no graph interpreter")

    def run_kernel(self, run: recording.KernelRun) -> Answer:
        """Refuses."""
        return NotExecutable(f"no interpreter for {run.kernel.name}")
