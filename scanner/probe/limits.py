"""How workers are started and when they are given up."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from scanner.backends.sim_spec import is_simulator

__all__ = ["Launch", "Limits"]

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on one worker and on one configuration."""

    case_s: float = 60.0
    """Longest that a configuration may take."""
    first_s: float = 120.0
    """So much longer for a worker's first configuration and an op's first: shaders are compiled."""
    start_s: float = 180.0
    """Longest that a worker may take to import its framework and prove the device."""
    linger_s: float = 0.1
    """How long to wait for a late death, where that matters."""
    replay_s: float = 30.0
    """A death that does not repeat alone is sought among what ran in so many seconds before it."""
    memory: int | None = None
    """Bytes of address space; only sensible without a GPU, whose driver reserves far more."""
    growth: int = 2 * _GIB
    """A worker that has grown by so many bytes is replaced."""
    starts: int = 3
    """Give up after so many workers in a row that did not come up."""
    runs: int = 3
    """How often a configuration is run before a death that does not repeat is called unknown."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How workers are started."""

    workers: int | None = None
    """None for two where the CPU does the work, else one: ops of a device disturb each other."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    fallback: bool | None = None
    """Whether ops without a kernel run on the CPU; None leaves the environment as it is."""
    runner: str = "scanner.probe.runner:torch_runner"
    command: tuple[str, ...] = (sys.executable, "-m", "scanner.probe.worker")

    def limits(self, device: str) -> Limits:
        """The usual limits for a device spec: nothing is compiled where a processor runs torch."""
        compiles = not _on_cpu(device) or is_simulator(device)
        return Limits() if compiles else Limits(first_s=0.0)

    def count(self, device: str) -> int:
        """Workers to run at a time for a device spec."""
        if self.workers is not None:
            return max(1, self.workers)
        return 2 if _on_cpu(device) else 1

    def threads(self, device: str) -> dict[str, str]:
        """Variables that keep workers on the CPU from taking each other's cores."""
        count = self.count(device)
        if count == 1 or not _on_cpu(device):
            return {}
        return {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // count))}


def _on_cpu(device: str) -> bool:
    return device == "cpu" or device.startswith("drill:") or is_simulator(device)
