"""Verifies the data files: form, order, uniqueness, ranges, counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from opdb import check_execution, intervals, store, tables
from scanner.errors import DataError

__all__ = ["problems", "report"]

_VALUES = {
    "key": {"MPS", "MPS.python", "SparseMPS", "SparseCsrMPS"},
    "function": {"kernel", "fallback", "raises", "decomposition"},
    "composite": {"implicit", "explicit", "nonfunctional", "raises", "none"},
    "cpu": {"cpu", "-"},
    "variant": {"functional", "inplace", "out", "mutable"},
    "view": {"view", "-"},
    "when": {"always", "maybe"},
}
"""Columns with a closed set of values."""


def report(folder: Path | None = None) -> str:
    """What was verified, one line a file. DataError that lists the problems when there are any."""
    chosen = folder or store.default.folder
    found = problems(chosen)
    if found:
        raise DataError(
            "\n".join(["the data files are damaged:", *found]),
            remedy="Reinstall opscan-metal, or rebuild the data with `python -m opdb.build torch`.",
        )
    there = [t for t in (*tables.TABLES, *tables.EXECUTION) if (chosen / t.file).exists()]
    counted = ((t, sum(1 for _ in tables.lines(chosen / t.file, t))) for t in there)
    return "".join(f"{chosen / table.file}: {count} facts, sound\n" for table, count in counted)


def problems(folder: Path) -> list[str]:
    """Everything wrong with the files of a folder, as `file:line: what`."""
    try:
        known = store.Store(folder)
        found = list(_releases(folder, known))
        counts: Counter[tuple[str, str]] = Counter()
        for table in tables.TABLES[1:]:
            found += _table(folder, table, known, counts)
        found += check_execution.problems(folder, known)
    except DataError as error:
        return [error.message]
    return found or list(_counts(folder, known, counts))


def _releases(folder: Path, known: store.Store) -> Iterator[str]:
    path = folder / tables.RELEASES.file
    before: list[int] = []
    for number, fields in tables.lines(path, tables.RELEASES):
        here = [int(part) if part.isdecimal() else -1 for part in fields[0].split(".")]
        if here <= before:
            yield f"{path}:{number}: releases are not in ascending order"
        if len(fields[2]) != 64:
            yield f"{path}:{number}: not a SHA-256: {fields[2]}"
        if not fields[1].startswith(f"torch-{fields[0]}-"):
            yield f"{path}:{number}: {fields[1]} is not a wheel of torch {fields[0]}"
        before = here
    if not known.releases:
        yield f"{path}:3: no release"


def _table(
    folder: Path, table: tables.Table, known: store.Store, counts: Counter[tuple[str, str]]
) -> Iterator[str]:
    path, before = folder / table.file, [""]
    taken: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for number, fields in tables.lines(path, table):
        where = f"{path}:{number}"
        if fields <= before:
            yield f"{where}: not in ascending order, or twice"
        before = fields
        yield from (f"{where}: {text}" for text in _values(table, fields))
        try:
            places = _places(fields[-1], known)
        except ValueError as error:
            yield f"{where}: {error}"
            continue
        fact = tuple(fields[: table.key])
        if taken[fact] & places:
            yield f"{where}: two facts about {fields[0]} in one release"
        taken[fact] |= places
        subject = fields[1] if table is tables.MPS else table.name
        counts.update((known.releases[place], subject) for place in places)


def _places(text: str, known: store.Store) -> set[int]:
    ranges = intervals.decode(text, known.places)
    places = {place for low, high in ranges for place in range(low, high + 1)}
    if intervals.encode([known.releases[place] for place in places], known.releases) != text:
        raise ValueError(f"{text!r} is not the shortest form of these releases")
    return places


def _values(table: tables.Table, fields: list[str]) -> Iterator[str]:
    for column, value in zip(table.columns, fields, strict=True):
        if column in _VALUES and value not in _VALUES[column]:
            yield f"{value!r} is not a {column}"


def _counts(folder: Path, known: store.Store, counts: Counter[tuple[str, str]]) -> Iterator[str]:
    """Whether the numbers recorded with each wheel are those of the facts."""
    path = folder / tables.RELEASES.file
    for number, (release, provenance) in enumerate(known.provenance.items(), start=3):
        for pair in provenance[2].split(","):
            name, _, count = pair.partition("=")
            if count != str(counts[release, name]):
                have = counts[release, name]
                yield f"{path}:{number}: recorded {pair}, and the files hold {have}"
