"""Measurements of a scan's configurations on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scanner.backends.interface import DeviceFacts
from scanner.probe.limits import Launch
from scanner.probe.observer import Observer, Progress
from scanner.probe.outcomes import measurement_of
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.store import Store, open_store
from scanner.probe.supervisor import probe
from scanner.records import Measurement, OpCall

__all__ = ["measure"]


def measure(
    calls: Sequence[OpCall],
    device: str,
    environ: Mapping[str, str],
    observer: Observer | None = None,
    options: Mapping[str, Any] | None = None,
    store: Path | None = None,
) -> dict[str, Measurement]:
    """`config_key` → what the device did with it.

    Configurations that touch the device with no tensor are left out, and after Ctrl-C those that
    were not reached are `unknown`.

    `options` go to the runner (`stress`, `timing`); what an earlier scan left in `store` is not
    run again. Raises `DeviceError` when the device cannot be used.
    """
    watch = _Facts(observer or Observer())
    wanted = [call for call in calls if _on_device(call)]
    outcomes: dict[str, Outcome] = {}
    with ExitStack() as stack:
        kept = _opened(stack, store, watch)
        launch = Launch(environ=environ)
        try:
            for outcome in probe(
                wanted, device, options, launch=launch, store=kept, observer=watch
            ):
                outcomes[outcome.key] = outcome
        except KeyboardInterrupt:
            if watch.facts is None:
                raise
    assert watch.facts is not None
    facts = watch.facts
    return {
        key: measurement_of(outcomes.get(key) or _interrupted(key), facts)
        for key in map(config_key, wanted)
    }


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
