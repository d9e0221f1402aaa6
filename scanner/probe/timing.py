"""How long a configuration takes, on the device and on the CPU, and which of them loses.

Both are timed as a training step runs them: call after call, waited for once at the end of a
sample. Samples of the two alternate, so that a machine that slows down slows both. The first call,
which compiles, is kept apart.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from scanner.probe.break_even import BreakEven

__all__ = ["Budget", "Contender", "Series", "Timing", "judge", "loses", "measure", "summarize"]

Run = Callable[[], Any]
Timer = Callable[[Run], float]

_NOISY = 0.10
_MOST_CALLS = 10_000
_FEWEST = 2
_LOSES_BY = 1.2
_WORTH_S = 2e-6
"""A loss of less, for each call, is no reason to change anything, and within Python's own noise."""
_DOUBT = 2.6
"""Standard deviations of the rank sum: one chance in two hundred, in each of two looks."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated timings of one thing, in seconds a call."""

    first_s: float
    """The first call: with compilation and whatever else happens once in a process."""
    median_s: float
    p10_s: float
    p90_s: float
    spread: float
    """Interquartile range ÷ median."""
    samples: int
    calls: int
    """Calls in each sample."""

    @property
    def noisy(self) -> bool:
        """Whether the spread is too large to trust a small difference."""
        return self.spread > _NOISY


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration on the device and on the CPU."""

    device: Series
    cpu: Series
    ratio: float
    """Device ÷ CPU, of medians; above 1 the device loses."""
    slow: bool
    """Whether the device loses by a fifth or more, beyond doubt, twice in a row."""
    warning: str = ""
    break_even: BreakEven | None = None
    """Where the device would win; sought only where it is slow."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much time a measurement may take."""

    seconds: float = 0.5
    """For all samples of both; first calls and warm-up come on top."""
    warmup_s: float = 0.02
    sample_s: float = 0.001
    """A sample repeats calls until it takes so long: shorter ones drown in the clock's grain."""
    least: int = 7
    """Samples of each, unless patience ends."""
    patience_s: float = 10.0
    """After so long two samples of each must do: too few to call anything slow."""
    most: int = 50


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One side of the comparison."""

    run: Run
    """Submits the op once."""
    timer: Timer
    """Seconds that its argument takes, waited for; see `Device.timer`."""


def measure(device: Contender, cpu: Contender, budget: Budget | None = None) -> Timing:
    """Time both sides; whatever they raise is raised here."""
    budget = budget or Budget()
    firsts = device.timer(device.run), cpu.timer(cpu.run)
    calls = _warm_up(device, budget), _warm_up(cpu, budget)

    ours, theirs = _samples((device, cpu), calls, budget)
    slow = loses(ours, theirs, calls)
    if slow:
        # A second look, so that a passing disturbance is not called a property of the op.
        ours, theirs = _samples((device, cpu), calls, budget)
        slow = loses(ours, theirs, calls)
    return judge(
        summarize(firsts[0], ours, calls[0]), summarize(firsts[1], theirs, calls[1]), slow=slow
    )


def judge(device: Series, cpu: Series, *, slow: bool) -> Timing:
    """Put two series together; warn of those that vary much."""
    noisy = [name for name, each in (("device", device), ("CPU", cpu)) if each.noisy]
    warning = f"timings vary much on the {' and the '.join(noisy)}" if noisy else ""
    ratio = device.median_s / cpu.median_s if cpu.median_s > 0 else float("inf")
    return Timing(device=device, cpu=cpu, ratio=ratio, slow=slow, warning=warning)


def summarize(first_s: float, samples: Sequence[float], calls: int) -> Series:
    """Order statistics of at least two samples, each the seconds of `calls` calls."""
    per_call = sorted(sample / calls for sample in samples)
    tenths = statistics.quantiles(per_call, n=10, method="inclusive")
    lower, median, upper = statistics.quantiles(per_call, n=4, method="inclusive")
    return Series(
        first_s=first_s,
        median_s=median,
        p10_s=tenths[0],
        p90_s=tenths[-1],
        spread=(upper - lower) / median if median > 0 else 0.0,
        samples=len(per_call),
        calls=calls,
    )


def loses(ours: Sequence[float], theirs: Sequence[float], calls: tuple[int, int]) -> bool:
    """Whether the first samples are slower: by a fifth or more, and not by chance.

    Chance is judged by the rank sum (Mann and Whitney 1947, normal approximation), which a few
    disturbed samples do not sway. The fifth is asked of the median and of the tenth percentile:
    what disturbs a machine makes some samples slower, never faster.
    """
    first, second = [each / calls[0] for each in ours], [each / calls[1] for each in theirs]
    one, other = summarize(0.0, first, 1), summarize(0.0, second, 1)
    if not _worse(one.median_s, other.median_s) or not _worse(one.p10_s, other.p10_s):
        return False
    n, m = len(first), len(second)
    rank_sum = sum((a > b) + 0.5 * (a == b) for a in first for b in second)
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return rank_sum - n * m / 2 > _DOUBT * deviation


def _worse(one: float, other: float) -> bool:
    return one >= _LOSES_BY * other and one - other >= _WORTH_S


def _warm_up(side: Contender, budget: Budget) -> int:
    """Run it for a while; how many calls make a sample."""
    calls, spent, taken = 1, 0.0, 0.0
    while spent < budget.warmup_s and calls < _MOST_CALLS:
        taken = side.timer(_times(side.run, calls))
        spent += taken
        if taken >= budget.sample_s:
            break
        calls *= 2
    return calls


def _samples(
    sides: tuple[Contender, Contender], calls: tuple[int, int], budget: Budget
) -> tuple[list[float], list[float]]:
    taken: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while len(taken[0]) < budget.most:
        spent = time.perf_counter() - start
        if len(taken[0]) >= budget.least and spent > budget.seconds:
            break
        if len(taken[0]) >= _FEWEST and spent > budget.patience_s:
            break
        for side, count, times in zip(sides, calls, taken, strict=True):
            times.append(side.timer(_times(side.run, count)))
        if len(taken[0]) >= 2 * budget.least and all(_steady(times) for times in taken):
            break
    return taken


def _steady(times: list[float]) -> bool:
    lower, median, upper = statistics.quantiles(times, n=4, method="inclusive")
    return upper - lower <= _NOISY / 2 * median


def _times(run: Run, count: int) -> Run:
    def repeated() -> None:
        for _ in range(count):
            run()

    return repeated
