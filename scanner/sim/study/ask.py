"""Asks worker processes about ops of simulated releases; torch and the emulator stay in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from scanner.backends.sim_spec import sim_spec
from scanner.errors import UsageError
from scanner.probe.limits import Launch
from scanner.probe.observer import Observer
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.supervisor import probe
from scanner.probe.sweep import Sample
from scanner.records import OpCall, Target
from scanner.report.words import inputs_text
from scanner.sim.study.interface import Change, Comparison, Difference, OpAnswer, Side

__all__ = ["ask_op", "compare_releases"]

_RUNS = frozenset({"native-shader", "native-graph", "fallback"})
_OP = "scanner.sim.study.op_runner:OpRunner"
_DIFF = "scanner.sim.study.diff_runner:DiffRunner"


def ask_op(
    op: str, target: Target, options: Mapping[str, Any], environ: Mapping[str, str]
) -> OpAnswer:
    """What the target's release does with one call; see `op_runner.OpOptions`.

    Raises `UsageError` for arguments that do not fit the op, `DeviceError` when the release
    cannot be opened. A simulator that dies or hangs is an *unknown* outcome.
    """
    call = OpCall(op=op, phase="forward", inputs=())
    launch = Launch(runner=_OP, environ=environ, workers=1)
    outcomes = list(probe([call], sim_spec(target), options, launch=launch))
    detail = outcomes[-1].detail
    if "misfit" in detail:
        raise UsageError(detail["misfit"], remedy=detail["remedy"])
    if "outcome" in detail:
        return msgspec.convert(detail, OpAnswer)
    return OpAnswer(
        op=op,
        torch=target.version,
        dtype=str(options.get("dtype", "")),
        outcome="unknown",
        message=outcomes[-1].reason,
    )


def compare_releases(
    before: Target,
    after: Target,
    samples: Sequence[Sample],
    environ: Mapping[str, str],
    observer: Observer | None = None,
) -> Comparison:
    """Every configuration on both; raises `DeviceError` when a release cannot be opened."""
    launch = Launch(runner=_DIFF, environ=environ)
    names = {config_key(sample.call): sample for sample in samples}
    found = probe(
        [sample.call for sample in samples],
        sim_spec(before),
        {"after": sim_spec(after)},
        launch=launch,
        observer=observer,
    )
    changes = {outcome.key: _change(outcome) for outcome in found}
    return Comparison(
        before=before.id,
        after=after.id,
        configurations=len(changes),
        unknown=sum(_unknown(change) for change in changes.values()),
        differences=tuple(
            Difference(
                kind=kind,
                name=names[key].name,
                op=names[key].call.op,
                inputs=inputs_text({"inputs": msgspec.to_builtins(names[key].call.inputs)}),
                attributes=names[key].call.attributes,
                change=change,
            )
            for key, change in changes.items()
            for kind in kinds(change)
        ),
    )


def kinds(change: Change) -> Iterator[str]:
    """How the releases differ on one configuration; nothing where one of them is unknown."""
    old, new = change.before.outcome, change.after.outcome
    if _unknown(change):
        return
    if old == "raises" and new in _RUNS:
        yield "now-runs"
    elif old in _RUNS and new == "raises":
        yield "now-raises"
    elif old != new:
        yield "path"
    if change.layout:
        yield "layout"
    if change.differs:
        yield "result"


def _change(outcome: Outcome) -> Change:
    if "before" in outcome.detail:
        return msgspec.convert(outcome.detail, Change)
    lost = Side(outcome="unknown", message=outcome.reason)
    return Change(before=lost, after=lost)


def _unknown(change: Change) -> bool:
    return "unknown" in (change.before.outcome, change.after.outcome)
