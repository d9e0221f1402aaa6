"""What a call of the public API does on MPS, known by its name alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from opdb import intervals, query, store, tables
from opdb.facts import OpFact, served_on_cpu

__all__ = ["Judged", "judge", "judged", "missing", "variable_serves"]

Lack = Literal["unsupported", "fallback"]


class Judged(NamedTuple):
    """Status of a call, and the overload that makes it so."""

    status: Lack | Literal["runs"]
    """`runs` also where nothing is known."""
    fact: OpFact | None = None


def judge(always: Sequence[str], one_of: Sequence[str], release: str) -> Judged:
    """The status of a call that dispatches all of `always` and one of `one_of` (plain names)."""
    facts = [query.lookup(op, release) for op in always]
    for fact in sorted(facts, key=_rank):
        if fact.status in ("unsupported", "fallback"):
            return Judged("unsupported" if fact.status == "unsupported" else "fallback", fact)
    choices = [fact for op in one_of if (fact := query.lookup(op, release)).exists]
    lacking = [fact for fact in choices if fact.status in ("unsupported", "fallback")]
    if not choices or len(lacking) < len(choices):
        return Judged("runs")
    mildest = max(lacking, key=_rank)
    return Judged("unsupported" if mildest.status == "unsupported" else "fallback", mildest)


def _rank(fact: OpFact) -> int:
    """Worst first."""
    return {"unsupported": 0, "fallback": 1}.get(fact.status, 2)


def missing(release: str) -> dict[str, Lack]:
    """Qualified public name → what is wrong with every call of it in a release that opdb knows."""
    found: dict[str, Lack] = {}
    if (place := store.default.places.get(release)) is None:
        return found
    where = store.default.places
    for name, *_, unsupported, fallback, _releases in _lines():
        if unsupported != "-" and intervals.contains(unsupported, place, where):
            found[name] = "unsupported"
        elif fallback != "-" and intervals.contains(fallback, place, where):
            found[name] = "fallback"
    return found


def variable_serves(judged: Judged) -> bool:
    """Whether PYTORCH_ENABLE_MPS_FALLBACK runs what raises on the CPU instead."""
    fact = judged.fact
    return fact is not None and fact.status == "unsupported" and served_on_cpu(fact, query.lookup)


@cache
def judged(name: str, release: str) -> Judged:
    """The same for one name, with the overload that decides."""
    where = store.default.places
    for found, always, one_of, *_, releases in _lines():
        if found == name and intervals.contains(releases, where[release], where):
            return judge(_ops(always), _ops(one_of), release)
    return Judged("runs")


def _lines() -> Iterator[list[str]]:
    path = store.default.folder / tables.API.file
    return (fields for _, fields in tables.lines(path, tables.API))


def _ops(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))
