"""Faults that raise, warn or dawdle: the op's manners rather than its result."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from scanner.backends import mps_facts

__all__ = ["SPOKEN", "slowly"]

_SLOWNESS = 3


def _raise(op: str) -> None:
    raise NotImplementedError(
        f"The operator '{op}' is not currently implemented for the MPS device. (drill)"
    )


def _exhaust(op: str) -> None:
    raise torch.OutOfMemoryError(
        "MPS backend out of memory (MPS allocated: 16.00 GB, other allocations: 3.31 GB, "
        f"max allowed: 18.13 GB). Tried to allocate 5.81 GB on private pool. (drill: {op})"
    )


def _fall_back(op: str) -> None:
    warnings.warn(
        f"The operator '{op}' is not currently supported on the MPS backend and will fall back "
        "to run on the CPU. This may have performance implications. (drill)",
        stacklevel=2,
    )


def _miss(op: str) -> None:
    """What MPS does with an op that it has no kernel for."""
    (_fall_back if mps_facts.fallback_is_on(os.environ) else _raise)(op)


def slowly(run: Callable[[], Any]) -> Any:
    """Runs and then spins; sleeping is too coarse for ops of microseconds."""
    start = time.perf_counter()
    result = run()
    end = start + _SLOWNESS * (time.perf_counter() - start)
    while time.perf_counter() < end:
        pass
    return result


SPOKEN: Mapping[str, Callable[[str], None]] = MappingProxyType(
    {"raise": _raise, "oom": _exhaust, "fallback": _fall_back, "missing": _miss}
)
"""Fault → what it does before the op runs, given the op's name."""
