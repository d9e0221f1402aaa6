"""What is said on stderr while a scan runs and after it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scanner.pipeline import Scan
    from scanner.settings import Settings

__all__ = ["interruptible", "progress", "say"]


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], object]]:
    """A line that names the source at work, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("starting") as status:
        yield lambda name: status.update(Text(f"capturing {name}"))


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that no child outlives opscan."""

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def say(result: Scan, settings: Settings, *, verbose: bool) -> None:
    """Notes about settings, tracebacks of our own, and with `-v` what the files printed."""
    from scanner.capture.ledger import NotCaptured

    for note in settings.notes:
        _line(f"opscan: note: {note}")
    for traceback in result.tracebacks:
        _line(f"opscan: internal error while whole steps were run:\n{traceback}")
    for capture in result.captures:
        for model in capture.models:
            if isinstance(model, NotCaptured) and model.traceback:
                _line(f"opscan: internal error on {model.name}:\n{model.traceback}")
        if verbose:
            _quote(f"{capture.argument} stdout", capture.stdout)
            _quote(f"{capture.argument} stderr", capture.stderr)
    if verbose:
        for name, origin in sorted(settings.origins.items()):
            _line(f"opscan: {name.replace('_', '-')} is set in {origin}")


def _quote(label: str, text: str) -> None:
    for line in text.splitlines():
        _line(f"[{label}] {line}")


def _line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
