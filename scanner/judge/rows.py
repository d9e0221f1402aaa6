"""Merges what the targets dispatch into one table of configurations, and counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from scanner.records import (
    CallOrder,
    Coverage,
    OpCall,
    OpGraph,
    OpReport,
    Status,
    Target,
    Verdict,
)
from scanner.statuses import SEVERITY_ORDER

__all__ = ["call_order", "coverage", "merge_rows", "worst_status"]

Judged = tuple[Target, OpGraph, Sequence[Verdict]]
"""A target, the graph it dispatches, and a verdict for each op of that graph."""


def merge_rows(judged: Iterable[Judged]) -> tuple[OpReport, ...]:
    """One row for each configuration, with a verdict of each target that dispatches it.

    Rows stand in order of first execution; those that only a later graph has follow the row they
    follow there.
    """
    return tuple(_merged(judged).values())


def call_order(judged: Sequence[Judged]) -> tuple[CallOrder, ...]:
    """What each target executes, as indices into `merge_rows(judged)`; equal orders once.

    A graph that kept no order, or not of all its calls, has none.
    """
    places = {key: place for place, key in enumerate(_merged(judged))}
    orders: dict[tuple[int, ...], list[str]] = {}
    for target, graph, _ in judged:
        if graph.steps and len(graph.steps) == sum(call.calls for call in graph.ops):
            rows = [places[key] for key in _keys(graph)]
            order = tuple(rows[step.op] for step in graph.steps)
            orders.setdefault(order, []).append(target.id)
    return tuple(CallOrder(targets=tuple(ids), rows=rows) for rows, ids in orders.items())


def _merged(judged: Iterable[Judged]) -> dict[str, OpReport]:
    """Rows by key, in the order of `merge_rows`."""
    rows: dict[str, OpReport] = {}
    followers: dict[str, list[str]] = {}
    start = ""
    for _, graph, verdicts in judged:
        anchor = start
        for key, call, verdict in zip(_keys(graph), graph.ops, verdicts, strict=True):
            if row := rows.get(key):
                rows[key] = msgspec.structs.replace(row, verdicts=(*row.verdicts, verdict))
                anchor = key
            else:
                rows[key] = _row(call, verdict)
                followers.setdefault(anchor, []).append(key)
        start = "before"
    order = [*_walk("before", followers), *_walk("", followers)]
    return {key: rows[key] for key in order}


def _walk(anchor: str, followers: dict[str, list[str]]) -> Iterator[str]:
    for key in followers.get(anchor, ()):
        yield key
        yield from _walk(key, followers)


def _keys(graph: OpGraph) -> list[str]:
    """A key for each op; equal configurations, should a graph hold any, are told apart."""
    seen: Counter[str] = Counter()
    keys = []
    for call in graph.ops:
        key = _key(call)
        keys.append(f"{seen[key]}{key}")
        seen[key] += 1
    return keys


def worst_status(verdicts: Iterable[Verdict]) -> Status:
    """The status that matters most among the verdicts of one row."""
    return min((verdict.status for verdict in verdicts), key=SEVERITY_ORDER.index)


def coverage(rows: Sequence[OpReport]) -> Coverage:
    """Configurations and calls by status, over all targets and for each."""
    by_config = Counter(worst_status(row.verdicts) for row in rows)
    by_call: Counter[Status] = Counter()
    targets: dict[str, tuple[Counter[Status], Counter[Status]]] = {}
    for row in rows:
        by_call[worst_status(row.verdicts)] += row.calls
        for verdict in row.verdicts:
            configs, calls = targets.setdefault(verdict.target, (Counter(), Counter()))
            configs[verdict.status] += 1
            calls[verdict.status] += row.calls
    return Coverage(
        by_config=_ordered(by_config),
        by_call=_ordered(by_call),
        by_target={
            target: {"by_config": _ordered(configs), "by_call": _ordered(calls)}
            for target, (configs, calls) in targets.items()
        },
    )


def _ordered(counts: Counter[Status]) -> dict[str, int]:
    return {status: counts[status] for status in reversed(SEVERITY_ORDER) if counts[status]}


def _row(call: OpCall, verdict: Verdict) -> OpReport:
    return OpReport(
        op=call.op,
        phase=call.phase,
        calls=call.calls,
        config=_config(call),
        verdicts=(verdict,),
        locations=call.locations,
        via=call.via,
    )


def _config(call: OpCall) -> dict[str, Any]:
    """Plain data, so that a row equals the one decoded from its JSON."""
    parts: dict[str, Any] = {
        "inputs": call.inputs,
        "attributes": call.attributes,
        "outputs": call.outputs,
    }
    if call.values:
        parts["values"] = call.values
    if call.inner:
        parts["inner"] = call.inner
    config: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parts))
    return config


def _key(call: OpCall) -> str:
    """Calls belong to the identity: a profile that decomposes more may run an op more often.

    Values do not: random numbers differ with what was drawn before. Nor does what a kernel calls:
    profiles differ in how far it is followed.
    """
    place = msgspec.structs.replace(call, locations=(), values={}, inner={})
    return msgspec.json.encode(place, order="deterministic").decode()
