"""How much work at once a device needs to win: sizes are doubled until it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

__all__ = ["BreakEven", "Ladder", "Limit", "Size", "break_even_text", "find_break_even"]

_LARGEST = 1 << 24


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """One size that was tried."""

    factor: int
    """By how much the leading dimension was grown."""
    elements: int
    """Of the largest tensor."""
    device_s: float
    cpu_s: float


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """From which size on the device wins."""

    reached: bool
    """Whether it won at the last size, twice in a row."""
    sizes: tuple[Size, ...] = ()
    """Every size that was tried, smallest first; the last one is where the search ended."""
    stopped: Literal["", "memory", "time", "refused", "fixed", "crash", "unknown"] = ""
    """Why a search that did not reach it ended; `refused`: a larger configuration raises;
    `fixed`: no leading dimension can be grown; `crash`: a larger one ends its process."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Bounds on the search."""

    seconds: float = 2.0
    memory: int = 1 << 28
    """Bytes of all tensors of the configuration."""


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """A configuration that can be grown."""

    size_of: Callable[[int], tuple[int, int]]
    """Elements of the largest tensor and bytes of all of them, at a factor."""
    time_at: Callable[[int], tuple[float, float]]
    """Seconds a call on the device and on the CPU, at a factor. May raise."""


def find_break_even(
    ladder: Ladder,
    limit: Limit | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> BreakEven:
    """Double the size until the device wins, or a bound is met."""
    limit = limit or Limit()
    end, took = clock() + limit.seconds, 0.0
    sizes: list[Size] = []
    factor = 2
    while factor <= _LARGEST:
        elements, memory = ladder.size_of(factor)
        if memory > limit.memory:
            return BreakEven(reached=False, sizes=tuple(sizes), stopped="memory")
        start = clock()
        # A size takes at most about twice what the one before took.
        if start + 2 * took > end:
            return BreakEven(reached=False, sizes=tuple(sizes), stopped="time")
        try:
            won = _tried(ladder, factor, elements, sizes)
        except Exception:
            return BreakEven(reached=False, sizes=tuple(sizes), stopped="refused")
        if won:
            return BreakEven(reached=True, sizes=tuple(sizes))
        took = clock() - start
        factor *= 2
    return BreakEven(reached=False, sizes=tuple(sizes), stopped="memory")


def _tried(ladder: Ladder, factor: int, elements: int, sizes: list[Size]) -> bool:
    """Time a size; one lucky look is not enough to win."""
    device, cpu = ladder.time_at(factor)
    won = device < cpu
    if won:
        device, cpu = ladder.time_at(factor)
        won = device < cpu
    sizes.append(Size(factor=factor, elements=elements, device_s=device, cpu_s=cpu))
    return won


def break_even_text(found: BreakEven) -> str:
    """What was found, continuing a sentence about a device that loses."""
    if not found.sizes:
        return f"how it does with more work at once is not known: {_REASONS[found.stopped]}"
    last = found.sizes[-1]
    if found.reached:
        return f"the device wins from {last.elements:,} elements on ({last.factor} times the batch)"
    return f"the device does not win up to {last.elements:,} elements: {_REASONS[found.stopped]}"


_REASONS = {
    "memory": "more would take too much memory",
    "time": "more would take too long",
    "refused": "more raises",
    "fixed": "no dimension of it is a batch that could be grown",
    "crash": "more ends the process",
    "unknown": "the search was cut short",
}
