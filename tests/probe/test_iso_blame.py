"""Inquiries as conversations: each trial and what came of it, without a process."""

from __future__ import annotations

from scanner.probe.blame import Inquiry, Step
from scanner.probe.protocol import Death, Outcome

ABORT = Death(kind="signal", what="SIGABRT")
HANG = Death(kind="hang", what="no result within 60 s")
KILLED = Death(kind="outside", what="SIGKILL")
FINE = Outcome(key="", status="native", reason="", seconds=1.0)


def verdict(step: Step, index: int) -> Outcome:
    assert step.follow is None
    ((settled, outcome),) = step.settled
    assert settled == index
    return outcome


def crash(outcome: Outcome) -> Death:
    assert outcome.status == "crash"
    assert outcome.death is not None
    return outcome.death


def unknown(outcome: Outcome) -> str:
    assert outcome.status == "unknown"
    return outcome.reason


def test_two_deaths_of_its_own_convict() -> None:
    inquiry = Inquiry(5, ABORT, history=(3, 4))
    assert inquiry.trial == (5,)
    death = crash(verdict(inquiry.died(5, ABORT), 5))
    assert (death.times, death.runs, death.alone) == (2, 2, True)


def test_one_that_survives_alone_is_replayed_with_what_ran_before() -> None:
    inquiry = Inquiry(5, ABORT, history=(3, 4))
    step = inquiry.passed(FINE)
    assert step.follow is inquiry
    assert step.settled == ()
    assert inquiry.trial == (3, 4, 5)
    death = crash(verdict(inquiry.died(5, ABORT), 5))
    assert (death.times, death.runs, death.alone) == (2, 3, False)


def test_a_late_death_is_blamed_on_whom_the_replay_points_at() -> None:
    inquiry = Inquiry(5, ABORT, history=(3, 4))
    inquiry.passed(FINE)
    step = inquiry.died(4, ABORT)
    assert step.settled == ((5, FINE),)
    other = step.follow
    assert other is not None
    assert other.trial == (4,)
    assert crash(verdict(other.died(4, ABORT), 4)).alone


def test_one_that_is_pointed_at_and_survives_alone_is_still_convicted() -> None:
    inquiry = Inquiry(5, ABORT, history=(3, 4))
    inquiry.passed(FINE)
    other = inquiry.died(4, ABORT).follow
    assert other is not None
    outcome = verdict(other.passed(FINE), 4)
    assert not crash(outcome).alone
    assert "when other ops have run in it before" in outcome.reason


def test_a_death_that_never_repeats_is_unknown_not_passed() -> None:
    inquiry = Inquiry(5, ABORT, history=(3, 4))
    inquiry.passed(FINE)
    assert "lost once (SIGABRT)" in unknown(verdict(inquiry.passed(FINE), 5))


def test_without_history_it_is_run_alone_as_often_as_allowed() -> None:
    inquiry = Inquiry(5, ABORT, runs=3)
    assert inquiry.passed(FINE).follow is inquiry
    assert inquiry.trial == (5,)
    assert "lost once" in unknown(verdict(inquiry.passed(FINE), 5))
    assert crash(verdict(again(Inquiry(5, ABORT, runs=3)), 5)).times == 2


def again(inquiry: Inquiry) -> Step:
    inquiry.passed(FINE)
    return inquiry.died(5, ABORT)


def test_a_killed_worker_says_nothing_about_the_op() -> None:
    inquiry = Inquiry(5, KILLED, history=(3, 4))
    assert verdict(inquiry.passed(FINE), 5) is FINE


def test_a_kill_before_does_not_count_towards_a_conviction() -> None:
    inquiry = Inquiry(5, KILLED)
    assert inquiry.died(5, ABORT).follow is inquiry
    death = crash(verdict(inquiry.died(5, ABORT), 5))
    assert (death.what, death.times, death.runs) == ("SIGABRT", 2, 3)


def test_one_that_is_always_killed_is_unknown() -> None:
    inquiry = Inquiry(5, KILLED, runs=3)
    assert inquiry.died(5, KILLED).follow is inquiry
    reason = unknown(verdict(inquiry.died(5, KILLED), 5))
    assert "3 times" in reason
    assert "lack of memory" in reason


def test_one_that_was_only_slow_is_cleared() -> None:
    slow = Outcome(key="", status="native", reason="", seconds=31.0)
    assert verdict(Inquiry(5, HANG, history=(4,), slow_s=30.0).passed(slow), 5) is slow
    assert Inquiry(5, HANG, history=(4,), slow_s=30.0).passed(FINE).follow is not None


def test_a_death_after_everything_was_done() -> None:
    inquiry = Inquiry(None, ABORT, history=(3, 4))
    assert inquiry.suspect is None
    assert inquiry.trial == (3, 4)
    step = inquiry.passed(FINE)
    assert step.settled == ()
    assert "did not happen again" in step.notice
    other = Inquiry(None, ABORT, history=(3, 4)).died(3, ABORT)
    assert other.settled == ()
    assert other.follow is not None
    assert other.follow.suspect == 3


def test_a_disturbed_replay_is_repeated() -> None:
    inquiry = Inquiry(5, ABORT, history=(4,), runs=4)
    inquiry.passed(FINE)
    assert inquiry.died(4, KILLED).follow is inquiry
    assert inquiry.trial == (4, 5)
    assert crash(verdict(inquiry.died(5, ABORT), 5)).times == 2
