"""Passes over the configurations of one scan: one device, one store, different settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from scanner.errors import DataError
from scanner.probe.journal import JournalInUseError
from scanner.probe.keeping import Keeping
from scanner.probe.limits import Launch
from scanner.probe.observer import Observer, Remembering
from scanner.probe.outcomes import measurement_of
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.store import Store, open_store
from scanner.probe.supervisor import DeviceError, probe
from scanner.records import Measurement, OpCall

__all__ = ["Session", "opened"]


class Session:
    """Passes over one device."""

    def __init__(
        self,
        device: str,
        environ: Mapping[str, str],
        options: Mapping[str, Any],
        keep: Keeping,
        store: Store | None,
        watch: Observer,
    ) -> None:
        self._device = device
        self._environ = environ
        self._options = options
        self._keep = keep
        self._store = store
        self._watch = Remembering(watch)
        self.interrupted = False
        """Whether Ctrl-C has ended a pass: there should be no further one."""

    def measured(
        self,
        calls: Sequence[OpCall],
        *,
        fallback: bool | None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Measurement]:
        """One pass; what Ctrl-C keeps from running is `unknown`. `options` come on top."""
        outcomes: dict[str, Outcome] = {}
        try:
            for outcome in self._run(calls, fallback, {**self._options, **(options or {})}):
                outcomes[outcome.key] = outcome
        except KeyboardInterrupt:
            if self._watch.facts is None:
                raise
            self.interrupted = True
            self._watch.interrupted()
        facts = self._watch.facts
        assert facts is not None
        return {
            key: measurement_of(outcomes.get(key) or _interrupted(key), facts)
            for key in map(config_key, calls)
        }

    def _run(
        self, calls: Sequence[OpCall], fallback: bool | None, options: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        journal = self._keep.journal({"fallback": fallback, "options": options})
        run = partial(
            probe,
            calls,
            self._device,
            options,
            launch=Launch(environ=self._environ, fallback=fallback),
            store=self._store,
            fresh=self._keep.fresh,
            observer=self._watch,
        )
        try:
            yield from run(journal=journal)
        except JournalInUseError:
            # The same scan is running twice: then the second one is not for resuming.
            yield from run()
        except DataError as error:
            self._watch.notice(f"The scan cannot be resumed: {error.message}.")
            yield from run()

    def further(
        self,
        calls: Sequence[OpCall],
        *,
        fallback: bool | None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Measurement]:
        """A pass that adds to an earlier one; empty when it is not possible."""
        if not calls or self.interrupted:
            return {}
        try:
            return self.measured(calls, fallback=fallback, options=options)
        except DeviceError as error:
            self._watch.notice(f"{len(calls)} configurations were not run again: {error.message}")
            return {}


def opened(stack: ExitStack, path: Path | None, watch: Observer) -> Store | None:
    """The store at `path`, closed with the stack; the watch hears what a user should know.

    None also for one that cannot be used, as in a container without a home: that keeps nothing
    from being measured.
    """
    if path is None:
        return None
    try:
        store, notice = open_store(path)
    except DataError as error:
        watch.notice(f"Measurements are not kept: {error.message}.")
        return None
    if notice:
        watch.notice(notice)
    return stack.enter_context(store)


def _interrupted(key: str) -> Outcome:
    return Outcome(key=key, status="unknown", reason="not run: interrupted", final=False)
