"""Runs what every target dispatches on the target's own release in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from scanner.backends.sim_spec import sim_spec
from scanner.judge.measured import call_of, with_simulation
from scanner.probe.plan import config_key
from scanner.records import Measurement, ModelReport, OpCall, Target

__all__ = ["simulate"]

Run = Callable[[Sequence[OpCall], str], Mapping[str, Measurement]]
"""Configurations and a device spec → `config_key` → what the device did."""


def simulate(
    models: Sequence[ModelReport], targets: Sequence[Target], run: Run
) -> list[ModelReport]:
    """The models with the verdicts of every target's simulator; what `run` raises is raised."""
    for target in targets:
        found = run(list(_dispatched(models, target.id)), sim_spec(target))
        lookup = partial(_found, found)
        models = [with_simulation(model, target, lookup) for model in models]
    return list(models)


def _dispatched(models: Sequence[ModelReport], target: str) -> Iterator[OpCall]:
    for model in models:
        for row in model.ops:
            if any(verdict.target == target for verdict in row.verdicts):
                yield call_of(row)


def _found(known: Mapping[str, Measurement], call: OpCall) -> Measurement | None:
    return known.get(config_key(call))
