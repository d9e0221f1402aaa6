"""The workers of a scan: kept at work, listened to, replaced when they die."""

from __future__ import annotations

import selectors
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from scanner.backends.interface import DeviceFacts, Unusable
from scanner.probe.blame import Inquiry, Step
from scanner.probe.life import Life
from scanner.probe.limits import Launch, Limits
from scanner.probe.outcomes import not_run, outcome_of, unreadable
from scanner.probe.plan import Plan
from scanner.probe.protocol import (
    Begin,
    Broken,
    Bye,
    Death,
    Idle,
    Message,
    Outcome,
    Ready,
    Refused,
    Result,
    Setup,
)

__all__ = ["Crew", "News"]

_TICK_S = 0.25
_OUTSIDE = 5
"""Starts ended by somebody else that weigh as much as one that failed by itself."""
_WORTH = 8
"""Configurations that make another worker worth its start."""


@dataclass
class News:
    """What a step has brought."""

    begun: list[str] = field(default_factory=list)
    """Keys of configurations now in flight."""
    outcomes: list[Outcome] = field(default_factory=list)
    """A later outcome of a key replaces an earlier one."""


class Crew:
    """Runs configurations of `plan` in as many workers as `launch` says. Close it when done."""

    def __init__(
        self,
        plan: Plan,
        setup: Setup,
        launch: Launch,
        limits: Limits,
        notice: Callable[[str], None],
    ) -> None:
        self._cases = plan.cases
        self._setup = setup
        self._launch = launch
        self._limits = limits
        self._notice = notice
        self._size = launch.count(setup.device)
        self._queue: deque[int] = deque()
        self._inquiries: deque[Inquiry] = deque()
        self._lives: list[Life] = []
        self._garbled: Counter[int] = Counter()
        self._hidden: Counter[int] = Counter()
        self._judged: set[int] = set()
        self._failures = 0
        self._unusable: Unusable | None = None
        self.facts: DeviceFacts | None = None

    def open(self) -> DeviceFacts | Unusable:
        """Start a first worker; say what device it has proven, or why there is none."""
        self._start()
        while self.facts is None:
            self.step()
            if self._hopeless:
                return self._unusable or Unusable(reason="no worker came up", remedy="")
            if not self._lives:
                self._start()
        return self.facts

    def give(self, indices: Iterable[int]) -> None:
        """Add configurations, by their place in the plan."""
        self._queue.extend(indices)

    @property
    def busy(self) -> bool:
        """Whether anything is still to be found out."""
        return bool(self._lives or self._queue or self._inquiries)

    def step(self) -> News:
        """Wait a moment for workers to say something, and see to it that they have work."""
        news = News()
        self._staff()
        self._assign()
        self._wait()
        for life in list(self._lives):
            for message in life.process.receive():
                self._heard(life, message, news)
            if life.process.ended or life.wait_s < 0:
                self._lost(life, news)
        if self._hopeless and self.facts is not None:
            self._give_up(news)
        return news

    @property
    def _hopeless(self) -> bool:
        return self._failures >= _OUTSIDE * self._limits.starts

    def close(self) -> None:
        """End every worker at once."""
        while self._lives:
            self._lives.pop().process.end()

    def _start(self) -> None:
        self._lives.append(Life(self._setup, self._launch, self._limits))

    def _staff(self) -> None:
        """Start workers for work that no present one can take."""
        if self.facts is None:
            return
        untouched = sum(life.starting or life.fresh for life in self._lives)
        present = sum(life.starting or life.ready for life in self._lives)
        wanted = max(len(self._inquiries) - untouched, -(-len(self._queue) // _WORTH) - present)
        for _ in range(min(self._size - len(self._lives), wanted)):
            self._start()

    def _assign(self) -> None:
        for life in self._lives:
            if self._inquiries and life.fresh:
                self._examine(life, self._inquiries.popleft())
        self._dismiss()
        share = -(-len(self._queue) // (2 * self._size))
        for life in self._lives:
            for _ in range(min(life.room, max(1, share), len(self._queue))):
                index = self._queue.popleft()
                life.give(index, self._cases[index], careful=index in self._hidden)

    def _dismiss(self) -> None:
        """Close workers that stand in the way of a fresh one, and all when the work is done."""
        idle = [life for life in self._lives if life.idle]
        if self._inquiries and len(self._lives) == self._size:
            if not any(life.starting for life in self._lives):
                for life in idle[:1]:
                    life.close()
        elif not self._queue and not self._inquiries and len(idle) == len(self._lives):
            for life in idle:
                life.close()

    def _examine(self, life: Life, inquiry: Inquiry) -> None:
        life.inquiry = inquiry
        for index in inquiry.trial:
            life.give(index, self._cases[index], careful=True)

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            for life in self._lives:
                selector.register(life.process.results, selectors.EVENT_READ)
            waits = [max(0.0, life.wait_s) for life in self._lives]
            selector.select(min([_TICK_S, *waits]))

    def _heard(self, life: Life, message: Message, news: News) -> None:
        life.heard(message)
        if isinstance(message, Ready):
            self.facts = self.facts or message.facts
            self._failures = 0
            self._unusable = None
        elif isinstance(message, Refused):
            self._unusable = message.unusable
            # A device that never worked will not; one that did may only need a moment.
            self._failures = self._failures if self.facts else _OUTSIDE * self._limits.starts
        elif isinstance(message, Begin):
            self._begun(life, message.index, news)
        elif isinstance(message, Result | Broken) and message.index == life.current:
            self._finished(life, message, news)
        elif isinstance(message, Idle | Bye):
            self._garble(life, news)
            if isinstance(message, Bye) and message.grown:
                self._notice("A worker had grown too large and was replaced.")

    def _begun(self, life: Life, index: int, news: News) -> None:
        if index not in life.assigned:
            return
        self._garble(life, news)
        life.begins(index, self._cases[index].op)
        news.begun.append(self._cases[index].key)

    def _garble(self, life: Life, news: News) -> None:
        """Run again what came to its end without a result that could be read."""
        index, life.current = life.current, None
        if index is None or (life.inquiry is not None and life.assigned):
            return
        inquiry, life.inquiry = life.inquiry, None
        self._garbled[index] += 1
        if self._garbled[index] >= self._limits.runs:
            news.outcomes.append(unreadable(self._cases[index].key, self._garbled[index]))
        elif inquiry is None:
            self._queue.appendleft(index)
        else:
            self._inquiries.appendleft(inquiry)

    def _finished(self, life: Life, message: Result | Broken, news: News) -> None:
        seconds = message.seconds if isinstance(message, Result) else 0.0
        life.finishes(message.index, seconds)
        outcome = outcome_of(self._cases[message.index].key, message)
        inquiry = life.inquiry
        if inquiry is None:
            # What an inquiry has found is not overturned by one more run that happens to pass.
            news.outcomes += [] if message.index in self._judged else [outcome]
        elif not life.assigned:
            life.inquiry = None
            self._advance(inquiry.passed(outcome), news)

    def _advance(self, step: Step, news: News) -> None:
        for index, outcome in step.settled:
            news.outcomes.append(msgspec.structs.replace(outcome, key=self._cases[index].key))
            self._judged.add(index)
            while index in self._queue:
                self._queue.remove(index)
        if step.notice:
            self._notice(step.notice)
        if step.follow is not None:
            # At once: a conviction may overturn what has been reported already.
            self._inquiries.appendleft(step.follow)

    def _lost(self, life: Life, news: News) -> None:
        self._lives.remove(life)
        unproven = life.unproven()
        death = life.death()
        inquiry, current = life.inquiry, life.current
        if inquiry is None:
            self._queue.extendleft(reversed(life.assigned))
        if life.left:
            return
        if life.starting:
            self._failed_to_start(death, inquiry)
        elif inquiry is not None:
            self._advance(inquiry.died(current, death), news)
        else:
            self._inquire(life, current, death)
            self._run_again(unproven)

    def _run_again(self, unproven: list[int]) -> None:
        """One death hides another that something finished just before would have died."""
        for index in reversed(unproven):
            self._hidden[index] += 1
            if self._hidden[index] < self._limits.runs:
                self._queue.appendleft(index)

    def _inquire(self, life: Life, current: int | None, death: Death) -> None:
        history = life.recent()
        if current is None and not history:
            self._notice(f"A worker was lost ({death.what}) before it had done anything.")
            return
        slow_s = self._limits.case_s / 2
        inquiry = Inquiry(current, death, history, runs=self._limits.runs, slow_s=slow_s)
        self._inquiries.append(inquiry)

    def _failed_to_start(self, death: Death, inquiry: Inquiry | None) -> None:
        # Whoever kills workers may hit several in a row before they are up.
        self._failures += 1 if death.kind == "outside" else _OUTSIDE
        if inquiry is not None:
            self._inquiries.appendleft(inquiry)
        if self._unusable is None:
            said = death.stderr.splitlines()[-1:]
            self._unusable = Unusable(
                reason=": ".join([f"a worker does not come up ({death.what})", *said]),
                remedy="Use the device in plain Python to see the failure, or --device none.",
            )

    def _give_up(self, news: News) -> None:
        """The device is gone: everything left is unknown."""
        reason = self._unusable.reason if self._unusable else "no worker came up"
        left: list[int | None] = [*self._queue, *(each.suspect for each in self._inquiries)]
        for life in self._lives:
            left += [life.inquiry.suspect] if life.inquiry else [*life.assigned, life.current]
        for index in dict.fromkeys(left):
            if index is not None:
                news.outcomes.append(not_run(self._cases[index].key, reason))
        self._queue.clear()
        self._inquiries.clear()
        self.close()
