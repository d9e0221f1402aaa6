"""Turns the facts of all releases into the text of the data files, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from opdb import intervals, tables
from opdb.build.derive import BACKENDS, Facts
from opdb.build.python_kernels import KEY

__all__ = ["Rows", "provenance", "read", "render", "rows"]

Rows = dict[tuple[str, ...], set[str]]
"""Fact (all columns but the last) → releases in which it holds."""


def rows(facts: Facts) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The facts of one release as (table name, columns without the last)."""
    for (op, key), function in facts.registered.items():
        yield tables.MPS.name, (op, key, function)
    for op, composite in facts.composite.items():
        calls = ",".join(sorted(facts.calls.get(op, ()))) or "-"
        yield tables.OPS.name, (op, composite, calls, "cpu" if op in facts.cpu else "-")
    for pair, when in facts.paths.items():
        yield tables.PATHS.name, (*pair, when)
    groups = _groups(facts)
    for op, schema in facts.schemas.items():
        view = "view" if schema.view else "-"
        yield tables.GROUPS.name, (op, schema.variant, groups[schema.signature], view)


def _groups(facts: Facts) -> dict[str, str]:
    """Signature → the overload that names the group: functional if there is one, else the first."""
    order = ("functional", "inplace", "mutable", "out")
    named = sorted(facts.schemas.values(), key=lambda s: (order.index(s.variant), s.name))
    return {schema.signature: schema.name for schema in reversed(named)}


def provenance(release: str, wheel: Path, sha256: str, facts: Facts) -> tuple[str, ...]:
    """The line of one release in `releases.tsv`."""
    counts = Counter(key for _, key in facts.registered)
    keys = (*BACKENDS, KEY)
    listed = [f"{key}={counts[key]}" for key in keys] + [f"ops={len(facts.composite)}"]
    return release, wheel.name, sha256, ",".join(listed), facts.tracker


def render(table: tables.Table, facts: Rows, releases: Iterable[str]) -> str:
    """Text of an interval table."""
    known = tuple(releases)
    body = ("\t".join((*fact, intervals.encode(facts[fact], known))) for fact in sorted(facts))
    return table.header + "".join(f"{line}\n" for line in body)


def read(path: Path, table: tables.Table, releases: Iterable[str]) -> Rows:
    """The inverse of `render`; empty when there is no file yet."""
    if not path.exists():
        return {}
    known = tuple(releases)
    where = intervals.positions(known)
    facts: Rows = {}
    for _, fields in tables.lines(path, table):
        spans = intervals.decode(fields[-1], where)
        facts[tuple(fields[:-1])] = {
            known[at] for low, high in spans for at in range(low, high + 1)
        }
    return facts
