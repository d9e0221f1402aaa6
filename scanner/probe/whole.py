"""Runs whole steps of captured models on a device, in child processes that it may end or hang.

A child that dies takes only the model in flight with it: what the device was given last is named,
and a new child goes on with the next model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from scanner.capture.child import Ending, Launch, run_child
from scanner.capture.protocol import Begin, Crash, Done
from scanner.probe.whole_protocol import (
    Doing,
    Point,
    Refused,
    Swept,
    Timing,
    Walked,
    WholeJob,
    WholeMessage,
    decode_whole,
)
from scanner.records import Accumulated, BatchPoint, BatchSweep, Divergence

__all__ = ["WORKER", "Whole", "run_whole"]

WORKER = "scanner.probe.whole_worker"
_OUTSIDE = frozenset({9, 15, 2, 1, 3})
"""Signals that somebody else sends: SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT."""
_QUOTED = 300


@dataclass(frozen=True, kw_only=True)
class Whole:
    """What became of one model."""

    accumulated: Accumulated | None = None
    batches: BatchSweep | None = None
    traceback: str = ""
    """Not empty for an error of opscan's own."""


@dataclass
class _Ledger:
    """What has been heard about the model in flight, and about those before it."""

    job: WholeJob
    done: dict[str, Whole] = field(default_factory=dict)
    entry: str = ""
    note: Divergence | None = None
    batch: int = 0
    walked: Accumulated | None = None
    swept: BatchSweep | None = None
    points: list[BatchPoint] = field(default_factory=list)
    refused: str = ""
    finished: bool = False
    explained: bool = False
    """Whether the child has said itself why it ends."""
    ops: int = 0

    def record(self, message: WholeMessage) -> None:
        """Takes note of one message."""
        match message:
            case Begin(entry=entry):
                self.settle()
                self.entry = entry
            case Doing(note=note):
                self.note = note
                self.ops += 1
            case Walked(result=result):
                self.walked, self.note = result, None
            case Timing(batch=batch):
                self.batch, self.note = batch, None
            case Point(point=point):
                self.points.append(point)
            case Swept(result=result):
                self.swept = result
            case Refused(entry="", reason=reason):
                self.refused, self.finished = reason, True
            case Refused(reason=reason):
                self.settle(reason)
            case Crash(traceback=traceback):
                self.done[self.entry] = Whole(traceback=traceback)
                self.finished, self.explained = not self.entry, True
                self.entry = ""
            case Done():
                self.settle()
                self.finished = True

    def settle(self, reason: str = "", ended: Divergence | None = None) -> None:
        """The model in flight is over; `reason` is why something of it is missing."""
        if self.entry:
            self.done[self.entry] = Whole(
                accumulated=self._accumulated(reason, ended), batches=self._batches(reason)
            )
        self.entry, self.note, self.batch, self.ops = "", None, 0, 0
        self.walked = self.swept = None
        self.points = []

    def left(self) -> tuple[str, ...]:
        """Entries that have not been dealt with."""
        return tuple(entry for entry in self.job.entries if entry not in self.done)

    def _accumulated(self, reason: str, ended: Divergence | None) -> Accumulated | None:
        if self.walked is not None or not self.job.steps:
            return self.walked
        return Accumulated(
            device=self.job.device,
            asked=self.job.steps,
            steps=ended.step - 1 if ended else 0,
            ops=max(self.ops - 1, 0),
            ended=ended,
            incomplete="" if ended else reason,
        )

    def _batches(self, reason: str) -> BatchSweep | None:
        asked = self.job.batches
        if not asked:
            return None
        memory = "lack of memory" in reason
        plain = BatchSweep(
            device=self.job.device,
            asked=asked,
            ended=reason if memory else "",
            incomplete="" if memory else reason,
        )
        swept = msgspec.structs.replace(self.swept or plain, points=tuple(self.points))
        best = min(swept.points, key=lambda point: point.sample_s, default=None)
        return msgspec.structs.replace(swept, best=best.batch if best else None)


def run_whole(job: WholeJob, launch: Launch) -> dict[str, Whole]:
    """Entry → what became of it; failures are values, never exceptions.

    Ctrl-C ends the child, sets `launch.stop` and leaves the rest undone.
    """
    ledger = _Ledger(job)
    try:
        while ledger.left() and not ledger.finished and not launch.stop.is_set():
            ledger.explained = False
            wanted = msgspec.structs.replace(job, entries=ledger.left())
            ending = run_child(wanted, launch, ledger.record, decode_whole)
            if not (ledger.finished or ledger.explained):
                _account_for(ending, ledger, launch)
    except KeyboardInterrupt:
        launch.stop.set()
        ledger.settle("interrupted")
    for entry in ledger.left():
        ledger.entry = entry
        ledger.settle(ledger.refused or "it was not reached")
    return ledger.done


def _account_for(ending: Ending, ledger: _Ledger, launch: Launch) -> None:
    """An end that the child did not announce."""
    if not ledger.entry:
        ledger.refused = f"{_cause(ending, launch)} while the file was loaded"
        ledger.finished = True
        return
    cause = _cause(ending, launch)
    note = ledger.note
    if note is None or (-ending.returncode in _OUTSIDE and not ending.timed_out):
        ledger.settle(f"{cause} {_doing(ledger)}")
        return
    kind = "hang" if ending.timed_out else "crash"
    said = _last_line(ending.stderr)
    message = cause + (f"; it printed: {said}" if said and not ending.timed_out else "")
    ledger.settle(ended=msgspec.structs.replace(note, kind=kind, message=message))


def _cause(ending: Ending, launch: Launch) -> str:
    if ending.timed_out:
        return f"it does not return within {launch.timeout_s:g} s"
    return ending.cause


def _doing(ledger: _Ledger) -> str:
    if ledger.batch:
        return f"at batch {ledger.batch}"
    if ledger.note is not None:
        return f"while {ledger.note.op} was run"
    return "between the ops of the step"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_QUOTED] if lines else ""
