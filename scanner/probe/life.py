"""One worker's life: what it has run, what it is running, and until when."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from scanner.probe.blame import Inquiry
from scanner.probe.limits import Launch, Limits
from scanner.probe.plan import Case
from scanner.probe.process import WorkerProcess
from scanner.probe.protocol import Bye, Close, Death, Message, Ready, Run, Setup, Sick

__all__ = ["Life"]

_DEPTH = 16


@dataclass(frozen=True)
class _Finished:
    index: int
    seconds: float
    at: float


class Life:
    """A worker process with the supervisor's account of it."""

    def __init__(self, setup: Setup, launch: Launch, limits: Limits) -> None:
        self.process = WorkerProcess(setup, launch)
        self._limits = limits
        self._ready = False
        self._closing = False
        self.left = False
        """Whether it has taken its leave, so that its end is no death."""
        self.inquiry: Inquiry | None = None
        """What its runs are to find out; None for ordinary work."""
        self.assigned: list[int] = []
        """What it has been given and has not begun, in order."""
        self.current: int | None = None
        """What is in flight."""
        self._history: list[_Finished] = []
        self._ops: set[str] = set()
        self._sick = ""
        self._patience(limits.start_s, "device")

    @property
    def ready(self) -> bool:
        """Whether its device has been proven and it takes commands."""
        return self._ready and not self._closing

    @property
    def starting(self) -> bool:
        """Whether its device is still being proven."""
        return not self._ready

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""
        return self.ready and self.current is None and not self.assigned

    @property
    def fresh(self) -> bool:
        """Whether it has run nothing yet."""
        return self.idle and not self._history

    @property
    def room(self) -> int:
        """How many more configurations it can be given to keep it busy."""
        if not self.ready or self.inquiry is not None or len(self.assigned) > _DEPTH // 2:
            return 0
        return _DEPTH - len(self.assigned)

    @property
    def wait_s(self) -> float:
        """Seconds until its patience ends; may be negative."""
        return self._deadline - time.monotonic()

    def give(self, index: int, case: Case, *, careful: bool) -> None:
        """Have it run a configuration after those it has; waiting for late deaths if `careful`."""
        self.assigned.append(index)
        self.process.send(Run(index=index, start=case.start, size=case.size, careful=careful))

    def close(self) -> None:
        """Have it end when it has done what it was given."""
        self._closing = True
        self._patience(self._limits.case_s, "end")
        self.process.send(Close())

    def heard(self, message: Message) -> None:
        """Account for what it says, results aside."""
        if isinstance(message, Ready):
            self._ready = True
            self._deadline = math.inf
        elif isinstance(message, Sick):
            self._sick = message.reason
        elif isinstance(message, Bye):
            self.left = True

    def begins(self, index: int, op: str) -> None:
        """It starts on a configuration that it was given."""
        self.assigned.remove(index)
        self.current = index
        first = not self._history or op not in self._ops
        seconds = self._limits.case_s + (self._limits.first_s if first else 0)
        # A second look must not fail for want of time.
        self._patience(seconds * (2 if self.inquiry else 1), "result")
        self._ops.add(op)

    def finishes(self, index: int, seconds: float) -> None:
        """The configuration in flight has its result."""
        self.current = None
        self._deadline = math.inf
        self._history.append(_Finished(index, seconds, time.monotonic()))

    def recent(self) -> tuple[int, ...]:
        """What it ran last, as far back as a replay goes, the latest last."""
        left = self._limits.replay_s
        found: list[int] = []
        for each in reversed(self._history):
            left -= each.seconds + self._limits.linger_s
            if left < 0:
                break
            found.append(each.index)
        return tuple(reversed(found))

    def unproven(self) -> list[int]:
        """What it finished so shortly ago that a late death of its own could not be seen."""
        since = time.monotonic() - self._limits.linger_s
        return [each.index for each in self._history if each.at >= since]

    def death(self) -> Death:
        """End it, if it has not, and say how it ended."""
        hung = f"no {self._waits_for}" if self.wait_s < 0 and not self.process.ended else ""
        death = self.process.death(hung=hung)
        self.process.end()
        if self._sick:
            return Death(kind="device", what=self._sick, stderr=death.stderr)
        return death

    def _patience(self, seconds: float, thing: str) -> None:
        self._deadline = time.monotonic() + seconds
        self._waits_for = f"{thing} within {seconds:g} s"
