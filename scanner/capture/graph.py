"""Assembles what was recorded into an `OpGraph` of ops that the target dispatches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from scanner.capture.lowering import CPU_ONLY, lower
from scanner.capture.recorder import Recorder
from scanner.records import Capture, OpCall, OpGraph, Step, Unseen

__all__ = ["assemble", "merged"]


def assemble(recorder: Recorder, holds: frozenset[str], capture: Capture, **about: Any) -> OpGraph:
    """The graph of a recorded step; `about` are the remaining fields of `OpGraph`."""
    lowered = [lower(call, holds) for call in recorder.calls()]
    ops, rows, places = merged(lowered)
    steps = tuple(
        Step(
            op=rows[step.op],
            location=places[step.op][step.location] if step.location >= 0 else -1,
            reads=step.reads,
            writes=step.writes,
        )
        for step in recorder.steps()
    )
    foreign = tuple(_foreign(ops))
    if foreign:
        capture = msgspec.structs.replace(
            capture, complete=False, unseen=(*capture.unseen, *foreign)
        )
    return OpGraph(
        ops=ops,
        steps=steps,
        values=recorder.values(),
        holds=tuple(sorted(holds)),
        capture=capture,
        **about,
    )


def _foreign(ops: Iterable[OpCall]) -> Iterable[Unseen]:
    """Ops that only a CPU would dispatch: what MPS does in their place was not seen."""
    for op in sorted({call.op for call in ops if any(part in call.op for part in CPU_ONLY)}):
        yield Unseen(what=op, reason="a CPU-only op; what MPS dispatches instead is not known")


def merged(calls: Iterable[OpCall]) -> tuple[tuple[OpCall, ...], list[int], list[list[int]]]:
    """Merges equal configurations; also the old→new index map and each row's location map."""
    index: dict[bytes, int] = {}
    rows: list[OpCall] = []
    remap: list[int] = []
    locations: list[list[int]] = []
    for call in calls:
        bare = msgspec.structs.replace(call, calls=0, locations=(), outputs=(), values={}, inner={})
        position = index.setdefault(msgspec.json.encode(bare, order="sorted"), len(rows))
        if position == len(rows):
            rows.append(call)
            locations.append(list(range(len(call.locations))))
        else:
            rows[position], moved = _joined(rows[position], call)
            locations.append(moved)
        remap.append(position)
    return tuple(rows), remap, locations


def _joined(into: OpCall, other: OpCall) -> tuple[OpCall, list[int]]:
    places = list(into.locations)
    moved = []
    for place in other.locations:
        if place not in places:
            places.append(place)
        moved.append(places.index(place))
    joined = msgspec.structs.replace(into, calls=into.calls + other.calls, locations=tuple(places))
    return joined, moved
