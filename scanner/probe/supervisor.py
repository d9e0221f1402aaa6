"""Runs every configuration of a scan on a device, whatever that does to the processes it takes.

    for outcome in probe(graph.ops, "mps", {}, journal=path):
        verdicts[outcome.key] = outcome

Every configuration gets an outcome. One that ends its process, or never returns, is a `crash`
with the evidence; one that was lost for reasons that are not the op's is `unknown`. Outcomes come
as they are known and the last one for a key holds: a death that arrives late overturns the result
of the configuration that caused it. When the caller stops early, what it has is the partial
result, and the journal lets a later scan go on from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from scanner.backends.interface import DeviceFacts, Unusable
from scanner.backends.open import check_device_spec
from scanner.backends.sim_spec import is_simulator
from scanner.errors import DataError, OpscanError
from scanner.probe.crew import Crew
from scanner.probe.journal import Journal, boot_id
from scanner.probe.limits import Launch, Limits
from scanner.probe.observer import Observer, Tally
from scanner.probe.outcomes import excused, not_run
from scanner.probe.plan import Plan, conditions_key, make_plan
from scanner.probe.protocol import Outcome, Setup
from scanner.probe.store import Store, StoreKey
from scanner.records import OpCall

__all__ = ["DeviceError", "probe"]


class DeviceError(OpscanError):
    """The device that was named cannot be used: nothing is known about any op, nothing is wrong."""

    def __init__(self, unusable: Unusable) -> None:
        super().__init__(unusable.reason, remedy=unusable.remedy)


def probe(
    calls: Iterable[OpCall],
    device: str,
    options: Mapping[str, Any] | None = None,
    *,
    launch: Launch | None = None,
    limits: Limits | None = None,
    journal: Path | None = None,
    store: Store | None = None,
    fresh: bool = False,
    observer: Observer | None = None,
) -> Iterator[Outcome]:
    """Outcomes of the distinct configurations among `calls` on `device` (`mps`, `drill:…`).

    `options` go to the runner and are part of what results are kept under, in `journal` (this
    scan's own, to be resumed) and `store` (all scans'; with `fresh` only written). Close the
    iterator, or leave it to the garbage collector, to end the workers.

    Raises `UsageError` for a device spec that does not parse or a journal in use, and
    `DeviceError` when the device cannot be used.
    """
    check_device_spec(device)
    watch = observer or Observer()
    launch = launch or Launch()
    limits = limits or launch.limits(device)
    plan = make_plan(calls)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="opscan-probe-")))
        plan.write(folder / "cases.jsonl")
        setup = _setup(device, options or {}, launch, limits, folder / "cases.jsonl")
        crew = Crew(plan, setup, launch, limits, watch.notice)
        stack.callback(crew.close)
        facts = crew.open()
        if isinstance(facts, Unusable):
            raise DeviceError(facts)
        conditions = _conditions(setup, launch, facts)
        memory = _Memory(plan, facts, conditions, store, watch, fresh=fresh)
        if journal is not None:
            memory.journal = stack.enter_context(Journal(journal, conditions, boot=boot_id()))
        judged = excused if is_simulator(device) else _as_it_is
        yield from _run(plan, crew, facts, memory, watch, judged)


def _setup(
    device: str, options: Mapping[str, Any], launch: Launch, limits: Limits, cases: Path
) -> Setup:
    return Setup(
        runner=launch.runner,
        device=device,
        cases=str(cases),
        options=dict(options),
        memory=limits.memory,
        growth=limits.growth,
        linger_s=limits.linger_s,
        # Longer than any deadline, a second look at a first call included.
        orphan_s=4 * (limits.case_s + limits.first_s),
    )


def _conditions(setup: Setup, launch: Launch, facts: DeviceFacts) -> str:
    """All that a result depends on, the configuration and the limits aside."""
    return conditions_key(
        {
            "device": facts,
            "options": setup.options,
            "fallback": launch.fallback,
            "runner": setup.runner,
        }
    )


def _as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def _run(
    plan: Plan,
    crew: Crew,
    facts: DeviceFacts,
    memory: _Memory,
    watch: Observer,
    judged: Callable[[Outcome], Outcome],
) -> Iterator[Outcome]:
    known = memory.known()
    watch.ready(facts, len(plan.cases), len(known))
    tally = Tally(len(plan.cases))
    for outcome in known.values():
        tally.add(outcome.key, reused=True)
        yield outcome
    crew.give(index for index, case in enumerate(plan.cases) if case.key not in known)
    while crew.busy:
        news = crew.step()
        outcomes = [judged(outcome) for outcome in news.outcomes]
        memory.keep(news.begun, outcomes)
        for outcome in outcomes:
            watch.progress(tally.add(outcome.key))
            yield outcome


class _Memory:
    """What is known from before, and where new results go."""

    def __init__(
        self,
        plan: Plan,
        facts: DeviceFacts,
        conditions: str,
        store: Store | None,
        watch: Observer,
        *,
        fresh: bool,
    ) -> None:
        self._fresh = fresh
        self._plan = plan
        self._place = StoreKey.of(facts, conditions)
        self._store = store
        self._watch = watch
        self.journal: Journal | None = None

    def known(self) -> dict[str, Outcome]:
        """Outcomes that need not be found again; this scan's own before the store's."""
        keys = [case.key for case in self._plan.cases]
        known: dict[str, Outcome] = {}
        if self._store is not None and not self._fresh:
            known = self._store.get_many(self._place, keys)
        if self.journal is not None:
            known.update(self._resumed(self.journal, set(keys)))
        return {key: known[key] for key in keys if key in known}

    def _resumed(self, journal: Journal, keys: set[str]) -> dict[str, Outcome]:
        if journal.replaced:
            self._watch.notice(f"{journal.path} belonged to another scan and starts anew.")
        if journal.dropped:
            self._watch.notice(f"{journal.path} had been cut off; what was lost is run again.")
        fatal = {
            key: msgspec.structs.replace(
                not_run(key, "the machine went down twice while this was running"), final=True
            )
            for key in journal.fatal
        }
        known = {**fatal, **journal.outcomes}
        found = {key: outcome for key, outcome in known.items() if key in keys}
        if found:
            self._watch.notice(f"Goes on with an unfinished scan: {len(found)} results are known.")
        return found

    def keep(self, begun: list[str], outcomes: list[Outcome]) -> None:
        """Bring news onto the disk before anyone is told; a full disk does not end the scan."""
        if self.journal is not None:
            try:
                _note(self.journal, begun, outcomes)
            except DataError as error:
                self.journal = None
                self._watch.notice(f"The scan cannot be resumed from here: {error.message}.")
        if self._store is not None and outcomes:
            try:
                self._store.put_many(self._place, outcomes)
            except DataError as error:
                self._store = None
                self._watch.notice(f"No more measurements are kept: {error.message}.")


def _note(journal: Journal, begun: list[str], outcomes: list[Outcome]) -> None:
    for key in begun:
        journal.begun(key)
    for outcome in outcomes:
        journal.add(outcome)
    journal.commit()
