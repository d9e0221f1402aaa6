"""What a session hands out: tensors and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from scanner.sim import trace
from scanner.sim.graph import recording

__all__ = ["Call", "SimTensor"]


@dataclass(eq=False)
class SimTensor:
    """A tensor in emulated memory. It is released when the last reference goes."""

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements; empty for layouts without strides."""
    offset: int
    device: str
    epoch: int
    """Which start of the process it belongs to."""


class Call(msgspec.Struct, frozen=True):
    """What a call did."""

    outcome: trace.Outcome
    path: trace.Outcome
    """What the host code chose, also when something could not be executed afterwards."""
    outputs: tuple[Any, ...] = ()
    """Results in the schema's order: `SimTensor`, lists of them, numbers, None."""
    message: str = ""
    """The exact text of an exception, or why the outcome is unknown."""
    error: str = ""
    """Python's name of the exception: `RuntimeError`, `NotImplementedError`, …"""
    events: tuple[trace.Event, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    """What the executors found wrong: accesses out of bounds, …"""
    notes: tuple[str, ...] = ()
    """Accesses past a tensor's end that stayed inside its allocation: no fault on a Mac."""
    runs: tuple[recording.GraphRun | recording.KernelRun, ...] = ()
    """Graphs and kernels as they were handed to the executor."""
    fallbacks: tuple[str, ...] = ()
    """Operators that were computed on the CPU."""
    routines: tuple[str, ...] = ()
    """LAPACK routines that the release called on the CPU: a fallback that no registration shows."""
    seconds: float = 0.0
