"""Measurements of a scan's configurations on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scanner.backends.interface import DeviceFacts
from scanner.backends.mps_facts import fallback_is_on
from scanner.backends.open import reads_fallback_variable
from scanner.probe.fallback import combined
from scanner.probe.limits import Launch
from scanner.probe.observer import Observer, Progress
from scanner.probe.outcomes import measurement_of
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.store import Store, open_store
from scanner.probe.supervisor import DeviceError, probe
from scanner.records import Measurement, OpCall

__all__ = ["measure"]


def measure(
    calls: Sequence[OpCall],
    device: str,
    environ: Mapping[str, str],
    observer: Observer | None = None,
    options: Mapping[str, Any] | None = None,
    store: Path | None = None,
    fallback: bool | None = None,
) -> dict[str, Measurement]:
    """`config_key` → what the device did with it.

    Configurations that touch the device with no tensor are left out, and after Ctrl-C those that
    were not reached are `unknown`.

    `options` go to the runner (`stress`, `timing`); what an earlier scan left in `store` is not
    run again. Where the device has a fallback variable, what raises without it is run once more
    with it; `fallback` says which of the two the verdict is (None: as `environ` has it). Raises
    `DeviceError` when the device cannot be used.
    """
    watch = _Facts(observer or Observer())
    wanted = [call for call in calls if _on_device(call)]
    with ExitStack() as stack:
        kept = _opened(stack, store, watch)
        session = _Session(device, environ, options or {}, kept, watch)
        if not reads_fallback_variable(device):
            return session.measured(wanted, None)
        off = session.measured(wanted, fallback=False)
        raised = [call for call in wanted if off[config_key(call)].status == "unsupported"]
        on = session.again(raised)
    enabled = fallback_is_on(environ) if fallback is None else fallback
    return {key: combined(off[key], on.get(key), enabled=enabled) for key in off}


class _Session:
    """Passes over one device that have all but the fallback variable in common."""

    def __init__(
        self,
        device: str,
        environ: Mapping[str, str],
        options: Mapping[str, Any],
        store: Store | None,
        watch: _Facts,
    ) -> None:
        self._device = device
        self._environ = environ
        self._options = options
        self._store = store
        self._watch = watch
        self._interrupted = False

    def measured(self, calls: Sequence[OpCall], fallback: bool | None) -> dict[str, Measurement]:
        """One pass; what Ctrl-C keeps from running is `unknown`."""
        outcomes: dict[str, Outcome] = {}
        launch = Launch(environ=self._environ, fallback=fallback)
        try:
            for outcome in probe(
                calls,
                self._device,
                self._options,
                launch=launch,
                store=self._store,
                observer=self._watch,
            ):
                outcomes[outcome.key] = outcome
        except KeyboardInterrupt:
            if self._watch.facts is None:
                raise
            self._interrupted = True
        facts = self._watch.facts
        assert facts is not None
        return {
            key: measurement_of(outcomes.get(key) or _interrupted(key), facts)
            for key in map(config_key, calls)
        }

    def again(self, calls: Sequence[OpCall]) -> dict[str, Measurement]:
        """A pass with the variable set; the first pass stands when it is not possible."""
        if not calls or self._interrupted:
            return {}
        try:
            return self.measured(calls, fallback=True)
        except DeviceError as error:
            self._watch.notice(f"Nothing was run with the fallback variable: {error.message}")
            return {}


def _opened(stack: ExitStack, path: Path | None, watch: Observer) -> Store | None:
    if path is None:
        return None
    store, notice = open_store(path)
    if notice:
        watch.notice(notice)
    return stack.enter_context(store)


def _on_device(call: OpCall) -> bool:
    """Ops on tensors that the user keeps on the CPU are not the device's."""
    return any(spec.device != "cpu" for spec in (*call.inputs, *call.outputs))


def _interrupted(key: str) -> Outcome:
    return Outcome(key=key, status="unknown", reason="not run: interrupted", final=False)


class _Facts(Observer):
    """Passes everything on, and remembers which device it is."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.facts: DeviceFacts | None = None

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
