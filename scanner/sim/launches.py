"""Fits the shader executor to what the host side asks of one."""

from __future__ import annotations

from pathlib import Path

from scanner.sim import executors, trace
from scanner.sim.executors import Answer, KernelSource, NotExecutable, PipelineLimits
from scanner.sim.machine.memory import Region
from scanner.sim.prepare.prepared import Prepared
from scanner.sim.shaders import executor as shaders
from scanner.sim.shaders import results
from scanner.sim.shaders.functions.interface import Direction
from scanner.sim.shaders.memory import SharedRegion
from scanner.sim.shaders.protocol import Description
from scanner.sim.shaders.sources import Sources, UncompilableError

__all__ = ["Shaders"]


class Shaders:
    """Runs kernels of the bundled libraries, and simple ones that are compiled at run time.

    One executor a library, started when first needed. `direction` says where in their error
    approximate functions end; it holds from the next launch on.
    """

    def __init__(
        self,
        prepared: Prepared,
        region: Region,
        cache: Path,
        workers: int = 1,
        direction: Direction = "nearest",
    ) -> None:
        self.direction: Direction = direction
        self._prepared = prepared
        self._region = SharedRegion(region.descriptor, region.host, region.size)
        self._cache = cache
        self._sources = Sources(cache / "sources")
        self._workers = workers
        self._executors: dict[str, shaders.Executor] = {}

    def close(self) -> None:
        """Ends the workers."""
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()

    def limits(self, kernel: KernelSource) -> PipelineLimits:
        """What the kernel says about its threadgroups."""
        if kernel.source is not None or kernel.constants:
            return PipelineLimits()
        description = self._executor(kernel.library).describe(kernel.name)
        if isinstance(description, Description):
            return PipelineLimits(description.max_threads or None, description.static_memory)
        return PipelineLimits()

    def run(self, launch: executors.Launch) -> Answer:
        """Runs one kernel over its whole grid."""
        kernel = launch.kernel
        if kernel.constants:
            return NotExecutable(f"{kernel.name} has function constants")
        try:
            code = self._sources.bitcode(kernel.source, kernel.name) if kernel.source else ""
        except UncompilableError as error:
            return NotExecutable(f"{kernel.name}: {error}")
        outcome = self._executor(kernel.library).run(_traced(launch), str(code))
        if isinstance(outcome, results.NotExecutable):
            return NotExecutable(outcome.reason)
        findings = outcome.findings if isinstance(outcome, results.Findings) else ()
        return executors.Done(tuple(map(str, findings)), tuple(map(str, outcome.notes)))

    def _executor(self, library: str) -> shaders.Executor:
        if library not in self._executors:
            section = self._prepared.library_file(library) if library else None
            self._executors[library] = shaders.Executor(
                section,
                self._cache / self._prepared.release,
                regions=[self._region],
                workers=self._workers,
            )
        executor = self._executors[library]
        executor.direction = self.direction
        return executor


def _traced(launch: executors.Launch) -> trace.Launch:
    return trace.Launch(
        kernel=launch.kernel.name,
        grid=launch.grid,
        threadgroup=launch.threadgroup,
        mode="threads" if launch.mode == "threads" else "threadgroups",
        bindings=launch.bindings,
    )
