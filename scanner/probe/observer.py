"""What a probe tells whoever watches it; it prints nothing itself."""

from __future__ import annotations

import time
from collections import deque

import msgspec

from scanner.backends.interface import DeviceFacts

__all__ = ["Observer", "Progress", "Remembering", "Tally"]

_WINDOW = 64


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a probe has come."""

    done: int
    """Configurations that have an outcome."""
    total: int
    rate: float
    """Configurations a second, lately; 0 as long as it cannot be told."""

    @property
    def remaining_s(self) -> float | None:
        """Seconds that the rest will take at this rate; None as long as it cannot be told."""
        return (self.total - self.done) / self.rate if self.rate else None


class Observer:
    """Sees and ignores everything; override what is of interest."""

    def ready(self, facts: DeviceFacts, total: int, reused: int) -> None:
        """The device works; `reused` of `total` configurations are known from before."""

    def progress(self, progress: Progress) -> None:
        """Another configuration has its outcome."""

    def notice(self, text: str) -> None:
        """Something happened that a user should know and that is not about an op."""

    def interrupted(self) -> None:
        """Ctrl-C has ended the probe before its end."""


class Remembering(Observer):
    """Passes everything on, and remembers which device it is and whether it was interrupted."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.facts: DeviceFacts | None = None
        self.was_interrupted = False

    def ready(self, facts: DeviceFacts, total: int, reused: int) -> None:
        """Remembers the device."""
        self.facts = facts
        self._observer.ready(facts, total, reused)

    def progress(self, progress: Progress) -> None:
        """Passed on."""
        self._observer.progress(progress)

    def notice(self, text: str) -> None:
        """Passed on."""
        self._observer.notice(text)

    def interrupted(self) -> None:
        """Remembered, and passed on."""
        self.was_interrupted = True
        self._observer.interrupted()


class Tally:
    """Counts and times what is done."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done: set[str] = set()
        self._times = deque([time.monotonic()], maxlen=_WINDOW)

    def add(self, key: str, *, reused: bool = False) -> Progress:
        """Count a configuration, once however often it is reported."""
        if key not in self._done and not reused:
            self._times.append(time.monotonic())
        self._done.add(key)
        elapsed = self._times[-1] - self._times[0]
        rate = (len(self._times) - 1) / elapsed if elapsed > 0 else 0.0
        return Progress(done=len(self._done), total=self._total, rate=rate)
