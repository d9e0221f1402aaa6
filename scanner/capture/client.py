"""Captures the models of one source in child processes that may crash, hang or exit.

A child that dies takes only the model in flight with it: that one is reported with the reason, and
a new child continues with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from scanner.capture.child import Ending, Launch, run_child
from scanner.capture.ledger import Captured, Ledger, NotCaptured
from scanner.capture.protocol import Job, decode_message

__all__ = ["Captured", "Launch", "NotCaptured", "SourceCapture", "capture_source"]

_STDERR_QUOTED = 4
_GUARD = 'Move what runs on import under `if __name__ == "__main__":`'


@dataclass(frozen=True, kw_only=True)
class SourceCapture:
    """Everything that came out of one source, in the order of its candidates."""

    argument: str
    models: tuple[Captured | NotCaptured, ...]
    notes: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    """What the user's file printed while it was loaded and run."""


def capture_source(job: Job, launch: Launch) -> SourceCapture:
    """Capture every model of `job.source`; failures are values, never exceptions."""
    ledger = Ledger(argument=job.source.argument, profiles=len(job.profiles))
    stdout: list[str] = []
    stderr: list[str] = []
    while not ledger.finished and not launch.stop.is_set():
        skip = (*job.skip, *ledger.settled())
        again = msgspec.structs.replace(job, skip=skip)
        ending = run_child(again, launch, ledger.record, decode_message)
        stdout.append(ending.stdout)
        stderr.append(ending.stderr)
        _account_for(ending, ledger, launch.timeout_s)
    return SourceCapture(
        argument=job.source.argument,
        models=ledger.models() or (_nothing(job.source.argument),),
        notes=(*job.notes, *ledger.notes),
        stdout="".join(stdout),
        stderr="".join(stderr),
    )


def _nothing(argument: str) -> NotCaptured:
    return NotCaptured(
        name=argument,
        entry="",
        message="no model was found in it",
        remedy="Define opscan_model() in it, or name the file that builds the model.",
        unreadable=True,
    )


def _account_for(ending: Ending, ledger: Ledger, timeout_s: float) -> None:
    """Explain an end that the child did not announce, so that each round settles something."""
    if ledger.finished:
        return
    if not ledger.located:
        _blame(ending, ledger, f"{timeout_s:g} s to load the file", "while the file was loaded")
        ledger.finished = True
        return
    if ledger.in_flight is None:
        # Died between two models. Nothing is lost when all had been seen; else the next is blamed,
        # since a child that keeps dying there would be started for ever.
        left = ledger.left()
        ledger.finished = not left
        if not left:
            return
        ledger.in_flight = left[0]
    _blame(ending, ledger, f"{timeout_s:g} s to capture the step", "while the step was captured")


def _blame(ending: Ending, ledger: Ledger, too_long: str, doing: str) -> None:
    if ending.timed_out:
        ledger.blame(f"it takes longer than {too_long}", remedy=_slow_remedy(ledger.located))
        return
    ledger.blame(
        f"{ending.cause} {doing}",
        remedy=_death_remedy(ledger.located),
        said=_last_lines(ending.stderr),
    )


def _slow_remedy(located: bool) -> str:
    if located:
        return "Raise --timeout, or give smaller example inputs with --inputs."
    return f"{_GUARD}, raise --timeout, or name a file that only builds the model."


def _death_remedy(located: bool) -> str:
    if located:
        return "Run one step of it in plain Python to see the failure."
    return f"{_GUARD}, or name a file that only builds the model."


def _last_lines(text: str) -> tuple[str, ...]:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(lines[-_STDERR_QUOTED:])
