"""Verifies the tables of what was executed: form, order, ranges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from opdb import intervals, store, tables
from opdb.simulated import OUTCOMES

__all__ = ["problems"]

_RANGE = re.compile(r"-|\d+(\.\.\d+)?")
_LAYOUTS = {"any", "strided", "offset", "expanded", "empty", "0-dim"}
_COUNTS = re.compile(r"calls=\d+,unknown=\d+,dtypes=\d+")


def problems(folder: Path, known: store.Store) -> Iterator[str]:
    """Everything wrong with them, as `file:line: what`; nothing where both files are missing."""
    if not (folder / tables.SIMULATIONS.file).exists():
        return
    yield from _simulations(folder, known)
    yield from _simulated(folder, known)


def _simulations(folder: Path, known: store.Store) -> Iterator[str]:
    path, before = folder / tables.SIMULATIONS.file, (-1, "")
    for number, fields in tables.lines(path, tables.SIMULATIONS):
        place = known.places.get(fields[0])
        if place is None:
            yield f"{path}:{number}: {fields[0]} is not a release of releases.tsv"
            continue
        if (place, fields[1]) <= before:
            yield f"{path}:{number}: not in ascending order, or twice"
        before = (place, fields[1])
        if not _COUNTS.fullmatch(fields[-1]):
            yield f"{path}:{number}: {fields[-1]!r} is not a count"


def _simulated(folder: Path, known: store.Store) -> Iterator[str]:
    path, before = folder / tables.SIMULATED.file, [""]
    taken: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    names = list(known.simulations)
    for number, fields in tables.lines(path, tables.SIMULATED):
        where = f"{path}:{number}"
        if fields <= before:
            yield f"{where}: not in ascending order, or twice"
        before = fields
        yield from (f"{where}: {text}" for text in _values(fields))
        try:
            ranges = intervals.decode(fields[-1], known.environments)
        except ValueError as error:
            yield f"{where}: {error}"
            continue
        places = {place for low, high in ranges for place in range(low, high + 1)}
        if intervals.encode([names[place] for place in places], names) != fields[-1]:
            yield f"{where}: {fields[-1]!r} is not the shortest form of these environments"
        fact = tuple(fields[: tables.SIMULATED.key])
        if taken[fact] & places:
            yield f"{where}: two facts about {fields[0]} in one environment"
        taken[fact] |= places


def _values(fields: list[str]) -> Iterator[str]:
    _, _, layout, outcome, calls, waits, launches, detail, _ = fields
    if layout not in _LAYOUTS:
        yield f"{layout!r} is not a layout"
    if outcome not in OUTCOMES:
        yield f"{outcome!r} is not an outcome"
    if not calls.isdecimal() or calls == "0":
        yield f"{calls!r} is not a number of calls"
    if not (_RANGE.fullmatch(waits) and _RANGE.fullmatch(launches)):
        yield f"{waits!r} or {launches!r} is not a range"
    if (detail == "-") == (outcome in {"raises", "mixed", "fallback", "unknown"}):
        yield f"{detail!r} does not fit {outcome}"
