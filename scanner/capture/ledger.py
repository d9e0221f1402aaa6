"""What is known about the models of one source while children come and go."""

from __future__ import annotations

from dataclasses import dataclass, field

from scanner.capture.protocol import (
    Attempt,
    Begin,
    CandidateInfo,
    Crash,
    Done,
    Failed,
    Graph,
    Located,
    Message,
)
from scanner.records import OpGraph

__all__ = ["Captured", "Ledger", "NotCaptured"]


@dataclass(frozen=True, kw_only=True)
class Captured:
    """A model whose step was seen under every lowering profile."""

    name: str
    entry: str
    graphs: dict[str, OpGraph]
    """Profile id → graph."""


@dataclass(frozen=True, kw_only=True)
class NotCaptured:
    """A model, or a whole source, that could not be captured."""

    name: str
    entry: str
    """Empty when the source itself failed."""
    message: str
    """A clause that follows "could not be captured: "."""
    remedy: str = ""
    attempts: tuple[Attempt, ...] = ()
    unreadable: bool = False
    """The user must mend something before opscan can start on it."""
    traceback: str = ""
    """Not empty for an error of opscan's own."""
    said: tuple[str, ...] = ()
    """Last lines on the child's stderr, when it died."""


@dataclass
class Ledger:
    """Collects the messages of all children that worked on one source."""

    argument: str
    profiles: int
    """How many graphs make an entry complete."""
    names: dict[str, str] = field(default_factory=dict)
    """Entry → name, in candidate order."""
    graphs: dict[str, dict[str, OpGraph]] = field(default_factory=dict)
    failures: dict[str, NotCaptured] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    in_flight: str | None = None
    located: bool = False
    finished: bool = False
    """Nothing is left to do."""

    def record(self, message: Message) -> None:
        """Take note of one message."""
        match message:
            case Located(candidates=candidates, notes=notes):
                self._locate(candidates, notes)
            case Begin(entry=entry):
                self.in_flight = entry
                self.graphs[entry] = {}
            case Graph(entry=entry, profile=profile, graph=graph):
                self._keep(entry, profile, graph)
            case Failed():
                self._fail(message)
            case Crash(traceback=traceback):
                self.finished = self.in_flight is None
                self.blame("opscan failed on it", traceback=traceback, unreadable=True)
            case Done():
                self.in_flight = None
                self.finished = True

    def blame(
        self,
        message: str,
        *,
        remedy: str = "",
        traceback: str = "",
        unreadable: bool = False,
        said: tuple[str, ...] = (),
    ) -> None:
        """Blame what is in flight, or the source itself when nothing is."""
        entry = self.in_flight or ""
        self.in_flight = None
        self.failures[entry] = NotCaptured(
            name=self._name(entry),
            entry=entry,
            message=message,
            remedy=remedy,
            traceback=traceback,
            unreadable=unreadable,
            said=said,
        )

    def settled(self) -> tuple[str, ...]:
        """Entries that a next child must not repeat."""
        begun = [entry for entry in self.graphs if entry != self.in_flight]
        return tuple(dict.fromkeys([*begun, *self.failures]))

    def left(self) -> list[str]:
        """Entries that no child has begun."""
        return [entry for entry in self.names if entry not in self.settled()]

    def models(self) -> tuple[Captured | NotCaptured, ...]:
        """All outcomes, in candidate order."""
        order = dict.fromkeys([*self.names, *self.graphs, *self.failures])
        return tuple(model for entry in order if (model := self._outcome(entry)) is not None)

    def _outcome(self, entry: str) -> Captured | NotCaptured | None:
        if entry in self.failures:
            return self.failures[entry]
        graphs = self.graphs.get(entry)
        if not graphs:
            return None
        if len(graphs) < self.profiles:
            missing = f"only {len(graphs)} of {self.profiles} ways to dispatch it were captured"
            return NotCaptured(name=self._name(entry), entry=entry, message=missing)
        return Captured(name=self.names[entry], entry=entry, graphs=graphs)

    def _locate(self, candidates: tuple[CandidateInfo, ...], notes: tuple[str, ...]) -> None:
        self.located = True
        self.notes = tuple(dict.fromkeys(self.notes + notes))
        for candidate in candidates:
            self.names.setdefault(candidate.entry, candidate.name)

    def _keep(self, entry: str, profile: str, graph: OpGraph) -> None:
        graphs = self.graphs.setdefault(entry, {})
        graphs[profile] = graph
        self.names[entry] = graph.name
        if len(graphs) == self.profiles:
            self.in_flight = None

    def _fail(self, failed: Failed) -> None:
        self.failures[failed.entry] = NotCaptured(
            name=self._name(failed.entry),
            entry=failed.entry,
            message=failed.message,
            remedy=failed.remedy,
            attempts=failed.attempts,
            unreadable=failed.unreadable,
        )
        self.finished = self.finished or not failed.entry

    def _name(self, entry: str) -> str:
        return self.names.get(entry, entry) or self.argument
