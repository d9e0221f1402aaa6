"""Finds out who is to blame for the death of a worker.

The configuration in flight is the first suspect, no more: a GPU's errors can arrive late, an op
may only fail after another, and machines have troubles of their own. So a suspect is run again,
alone, in a fresh process. If that one survives, everything that ran shortly before is run again
in order, each with a pause for late deaths, so that a death lands where it belongs. What does not
repeat is unknown: neither a finding nor a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from scanner.probe.protocol import Death, Outcome

__all__ = ["Inquiry", "Step", "convicted"]

_ENOUGH = 2
"""Deaths of its own that convict a configuration."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a run has brought to light."""

    settled: tuple[tuple[int, Outcome], ...] = ()
    """Configurations whose outcome is now known; their keys are still to be filled in."""
    follow: Inquiry | None = None
    """What to find out next, in a fresh worker: this inquiry or a new one; None when done."""
    notice: str = ""


class Inquiry:
    """The inquiry into one death. `trial` is to be run, carefully, in a fresh worker."""

    def __init__(
        self,
        suspect: int | None,
        death: Death,
        history: tuple[int, ...] = (),
        *,
        runs: int = 3,
        slow_s: float = 30.0,
        accused: bool = False,
    ) -> None:
        """`suspect` is None when nothing was in flight; `history` ran before, the latest last.

        `runs` bounds how often the suspect is run. A suspect that hung is cleared by a result
        that takes at least `slow_s`. `accused` says that a replay has already pointed at it.
        """
        self._suspect = suspect
        self._deaths = [death]
        self._history = history
        self._runs = 1
        self._most_runs = runs
        self._slow_s = slow_s
        self._accused = accused
        self._candidate: Outcome | None = None
        self._replaying = suspect is None

    @property
    def suspect(self) -> int | None:
        """Whose outcome depends on this inquiry."""
        return self._suspect

    @property
    def trial(self) -> tuple[int, ...]:
        """Configurations to run, in order."""
        alone = () if self._suspect is None else (self._suspect,)
        return (*self._history, *alone) if self._replaying else alone

    def died(self, index: int | None, death: Death) -> Step:
        """The trial has ended in a death while `index` was in flight."""
        if death.kind == "outside" or index is None:
            return self._disturbed(death)
        if self._replaying and index != self._suspect:
            return self._points_at(index, death)
        self._runs += 1
        self._deaths.append(death)
        if len(self._own) < _ENOUGH:
            return Step(follow=self)
        return self._convict(alone=not self._replaying)

    def passed(self, outcome: Outcome) -> Step:
        """The trial has come to its end; `outcome` is that of its last configuration."""
        if self._replaying:
            return self._unexplained()
        self._runs += 1
        if self._cleared_by(outcome):
            return self._settle(outcome)
        if self._accused:
            return self._convict(alone=False)
        self._candidate = outcome
        if self._history:
            self._replaying = True
            return Step(follow=self)
        return Step(follow=self) if self._runs < self._most_runs else self._unexplained()

    def _cleared_by(self, outcome: Outcome) -> bool:
        """Whether the first death says nothing, given that the configuration can be run."""
        slow = outcome.seconds >= self._slow_s
        return all(slow and death.kind == "hang" for death in self._own)

    @property
    def _own(self) -> list[Death]:
        """Deaths that no one else is known to have caused."""
        return [death for death in self._deaths if death.kind != "outside"]

    def _disturbed(self, death: Death) -> Step:
        """Somebody else ended the trial: run it again, but not for ever."""
        self._runs += 1
        self._deaths.append(death)
        if self._runs < self._most_runs:
            return Step(follow=self)
        hint = ", perhaps for lack of memory" if death.what == "SIGKILL" else ""
        times = len(self._deaths) - len(self._own)
        reason = f"its process was ended {times} times by something else ({death.what}{hint})"
        return self._settle(
            Outcome(key="", status="unknown", reason=reason, death=self._evidence())
        )

    def _points_at(self, index: int, death: Death) -> Step:
        """The replay died in another configuration than was suspected: inquire into that one."""
        cleared = self._settle(self._candidate) if self._candidate else Step()
        other = Inquiry(index, death, runs=self._most_runs, slow_s=self._slow_s, accused=True)
        return Step(settled=cleared.settled, follow=other)

    def _convict(self, *, alone: bool) -> Step:
        return self._settle(convicted(self._evidence(alone=alone)))

    def _unexplained(self) -> Step:
        death = self._evidence()
        if self._suspect is None:
            return Step(
                notice=f"A worker was lost ({death.what}) after everything it was given had been "
                "done. It did not happen again."
            )
        reason = f"its process was lost once ({death.what}), which did not happen again"
        return self._settle(Outcome(key="", status="unknown", reason=reason, death=death))

    def _evidence(self, *, alone: bool = False) -> Death:
        deaths = self._own or self._deaths
        return msgspec.structs.replace(
            deaths[-1], times=len(deaths), runs=max(self._runs, len(deaths)), alone=alone
        )

    def _settle(self, outcome: Outcome) -> Step:
        return Step(settled=() if self._suspect is None else ((self._suspect, outcome),))


def convicted(death: Death) -> Outcome:
    """The outcome of a configuration that is known to end its process, or never to return."""
    what = {
        "signal": f"ends the process with {death.what}",
        "exit": f"ends the process with {death.what}",
        "hang": f"does not return: {death.what}",
        "device": f"leaves the device unusable: {death.what}",
        "memory": f"runs out of memory and ends the process with {death.what}",
        "outside": f"is ended from outside with {death.what}",
    }[death.kind]
    when = "" if death.alone else " when other ops have run in it before"
    reason = f"{what}{when} ({death.times} of {death.runs} runs)"
    return Outcome(key="", status="crash", reason=reason, death=death)
