"""The shaders of a release behind the simulator's protocol of executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from scanner.sim import executors, trace

from .executor import Executor
from .functions.interface import Direction
from .memory import SharedRegion
from .results import Finding, Findings, NotExecutable

__all__ = ["Shaders", "sentence"]


class Shaders:
    """Runs kernels of any of a release's library sections.

    `sections` maps a section's name (`metal_basic`) to its file; the first is meant where a
    pipeline names none. Every section has workers of its own, started when first used.
    """

    def __init__(
        self,
        sections: Mapping[str, Path],
        cache: Path,
        *,
        regions: Sequence[SharedRegion] = (),
        seconds: float = 10.0,
        workers: int = 2,
        direction: Direction = "nearest",
    ) -> None:
        self._sections = dict(sections)
        self._cache, self._regions = cache, tuple(regions)
        self._seconds, self._workers, self._direction = seconds, workers, direction
        self._executors: dict[str, Executor] = {}

    def limits(self, kernel: executors.KernelSource) -> executors.PipelineLimits:
        """What the kernel says of its threadgroups; nothing where it cannot be compiled here."""
        executor = self._executor(kernel)
        if isinstance(executor, NotExecutable):
            return executors.PipelineLimits()
        known = executor.describe(kernel.name)
        if isinstance(known, NotExecutable):
            return executors.PipelineLimits()
        return executors.PipelineLimits(known.max_threads or None, known.static_memory)

    def run(self, launch: executors.Launch) -> executors.Answer:
        """Runs one kernel over its whole grid."""
        executor = self._executor(launch.kernel)
        if isinstance(executor, NotExecutable):
            return executors.NotExecutable(executor.reason)
        outcome = executor.run(
            trace.Launch(
                kernel=launch.kernel.name,
                grid=launch.grid,
                threadgroup=launch.threadgroup,
                mode="threads" if launch.mode == "threads" else "threadgroups",
                bindings=launch.bindings,
            )
        )
        if isinstance(outcome, NotExecutable):
            return executors.NotExecutable(f"{launch.kernel.name}: {outcome.reason}")
        if isinstance(outcome, Findings):
            return executors.Done(tuple(sentence(f) for f in outcome.findings))
        return executors.Done()

    def close(self) -> None:
        """Ends all workers."""
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()

    def _executor(self, kernel: executors.KernelSource) -> Executor | NotExecutable:
        if kernel.source is not None:
            return NotExecutable(f"{kernel.name}: its source is compiled at run time on a Mac")
        if kernel.constants:
            return NotExecutable(f"{kernel.name}: it is specialised by function constants")
        section = kernel.library or next(iter(self._sections), "")
        if section not in self._sections:
            return NotExecutable(f"the release has no library {section!r}")
        if section not in self._executors:
            self._executors[section] = Executor(
                self._sections[section],
                self._cache,
                index=self._cache / f"{self._sections[section].parent.name}-{section}.index",
                regions=self._regions,
                workers=self._workers,
                seconds=self._seconds,
                direction=self._direction,
            )
        return self._executors[section]


def sentence(finding: Finding) -> str:
    """A finding in words."""
    times = "" if finding.count == 1 else f" ({finding.count} times)"
    if finding.kind == "division":
        return f"divides an integer by zero{times}"
    verb = "reads" if finding.kind == "read" else "writes"
    if finding.argument < 0:
        where = f"array {finding.name}" if finding.name else "memory it has no buffer for"
        return f"{verb} outside {where} at byte {finding.offset}{times}"
    return (
        f"{verb} outside buffer {finding.argument} ({finding.name}, {finding.length} bytes) "
        f"at byte {finding.offset}{times}"
    )
