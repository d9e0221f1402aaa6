"""Timings on a clock that is told what to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scanner.probe.timing import Budget, Contender, Series, judge, loses, measure, summarize

BUDGET = Budget(seconds=0.0, warmup_s=0.004, sample_s=0.001, least=7, most=20)


class Side:
    """Takes `first` seconds once, then `seconds` each, and `seconds + noise` every other time."""

    def __init__(self, seconds: float, first: float = 0.5, noise: float = 0.0) -> None:
        self.seconds, self.first, self.noise = seconds, first, noise
        self.runs = 0
        self.clock = 0.0
        self.samples = 0

    def run(self) -> None:
        self.runs += 1
        odd = self.noise if self.samples % 2 else 0.0
        self.clock += self.first if self.runs == 1 else self.seconds + odd

    def timer(self, run: Callable[[], Any]) -> float:
        self.samples += 1
        before = self.clock
        run()
        return self.clock - before

    @property
    def contender(self) -> Contender:
        return Contender(run=self.run, timer=self.timer)


def timed(device: Side, cpu: Side) -> Any:
    return measure(device.contender, cpu.contender, BUDGET)


def test_medians_first_calls_and_ratio() -> None:
    timing = timed(Side(0.002, first=0.8), Side(0.004, first=0.1))
    assert timing.device.median_s == pytest.approx(0.002)
    assert timing.device.first_s == pytest.approx(0.8)
    assert timing.cpu.first_s == pytest.approx(0.1)
    assert timing.ratio == pytest.approx(0.5)
    assert not timing.slow
    assert timing.warning == ""


def test_short_runs_are_sampled_in_bulk() -> None:
    timing = timed(Side(0.00001), Side(0.002))
    assert timing.device.calls == 128
    assert timing.device.median_s == pytest.approx(0.00001)
    assert timing.cpu.calls == 1


@pytest.mark.parametrize(
    ("device", "slow"), [(0.003, True), (0.00121, True), (0.00119, False), (0.001, False)]
)
def test_slow_is_a_loss_by_a_fifth(device: float, slow: bool) -> None:
    assert timed(Side(device), Side(0.001)).slow is slow


@pytest.mark.parametrize(
    ("ours", "theirs", "lost"),
    [
        # A disturbed sample on either side sways nothing.
        ([3.0] * 9 + [30.0], [1.0] * 9 + [40.0], True),
        # The medians differ, but the undisturbed samples do not.
        ([1.0] * 4 + [3.0] * 6, [1.0] * 10, False),
        # Too few to be sure.
        ([3.0, 3.1], [1.0, 1.1], False),
        ([1.0, 5.0] * 5, [0.7, 4.0] * 5, False),
        ([1.1] * 10, [1.0] * 10, False),
    ],
)
def test_a_loss_is_beyond_doubt(ours: list[float], theirs: list[float], lost: bool) -> None:
    assert loses(ours, theirs, (1, 1)) is lost


def test_samples_of_different_sizes_compare_by_call() -> None:
    assert loses([30.0] * 10, [1.0] * 10, (10, 1))
    assert not loses([30.0] * 10, [1.0] * 10, (40, 1))


def test_noise_is_warned_of() -> None:
    timing = timed(Side(0.001), Side(0.001, noise=0.001))
    assert not timing.slow
    assert timing.warning == "timings vary much on the CPU"


def test_a_loss_that_does_not_repeat_is_none() -> None:
    class Recovering(Side):
        def run(self) -> None:
            super().run()
            if self.samples > 12:
                self.seconds = 0.001

    device = Recovering(0.003)
    timing = timed(device, Side(0.001))
    assert device.seconds == 0.001
    assert not timing.slow


def test_order_statistics_by_hand() -> None:
    series = summarize(
        9.0, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 110.0], 10
    )
    assert series == Series(
        first_s=9.0, median_s=6.0, p10_s=2.0, p90_s=10.0, spread=5 / 6, samples=11, calls=10
    )
    assert series.noisy


def test_warnings_name_both_sides() -> None:
    noisy = Series(first_s=1, median_s=1, p10_s=1, p90_s=1, spread=0.11, samples=7, calls=1)
    steady = Series(first_s=1, median_s=1, p10_s=1, p90_s=1, spread=0.10, samples=7, calls=1)
    assert judge(noisy, noisy, slow=False).warning == "timings vary much on the device and the CPU"
    assert judge(steady, noisy, slow=False).warning == "timings vary much on the CPU"
    assert judge(steady, steady, slow=False).warning == ""


def test_what_a_side_raises_is_raised() -> None:
    def fail() -> None:
        raise RuntimeError("no kernel")

    side = Side(0.001)
    with pytest.raises(RuntimeError, match="no kernel"):
        measure(Contender(run=fail, timer=side.timer), side.contender, BUDGET)


def test_patience_ends_before_there_are_enough_samples() -> None:
    hasty = Budget(seconds=0.0, warmup_s=0.004, sample_s=0.001, least=7, most=20, patience_s=0.0)
    timing = measure(Side(0.9).contender, Side(0.1).contender, hasty)
    assert timing.device.samples == timing.cpu.samples == 2
    # Nine times as long, but seen too seldom to be sure.
    assert not timing.slow
