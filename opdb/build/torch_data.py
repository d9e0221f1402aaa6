"""Data files of PyTorch: derives releases, merges them with what is known, renders the files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from opdb import tables
from opdb.build import download, write
from opdb.build.derive import derive
from opdb.build.paths import leading
from opdb.build.releases import RELEASES

__all__ = ["FOLDER", "RELEASES", "Derived", "current", "derive_release", "merge", "recorded"]

FOLDER = Path(__file__).parents[1] / "data" / "torch"


class Derived(NamedTuple):
    """What one wheel contributes to the files."""

    release: str
    provenance: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def recorded(folder: Path) -> dict[str, tuple[str, str]]:
    """Release → wheel name and hash that the present data were made from."""
    path = folder / tables.RELEASES.file
    if not path.exists():
        return {}
    return {fields[0]: (fields[1], fields[2]) for _, fields in tables.lines(path, tables.RELEASES)}


def derive_release(job: tuple[str, Path, tuple[str, str] | None]) -> Derived:
    """Downloads and reads one wheel; a job is release, cache folder and recorded wheel."""
    release, cache, known = job
    path, sha256 = download.wheel(release, cache, known)
    facts = derive(path)
    return Derived(
        release, write.provenance(release, path, sha256, facts), tuple(write.rows(facts))
    )


def merge(folder: Path, derived: Iterable[Derived]) -> dict[str, str]:
    """File name → text, with the derived releases replaced and the others as they are.

    Calls that a derived release is the first to make matter are not added to the others: then
    derive all.
    """
    fresh = {one.release: one for one in derived}
    old = recorded(folder)
    known = tuple(release for release in RELEASES if release in fresh or release in old)
    files = {tables.RELEASES.file: _releases(folder, fresh, known)}
    merged = {
        table.name: _merged(folder, table, fresh, [r for r in RELEASES if r in old])
        for table in tables.TABLES[1:]
    }
    paths, ops, mps = (merged[table.name] for table in (tables.PATHS, tables.OPS, tables.MPS))
    merged[tables.PATHS.name] = leading(paths, ops, mps, known)
    for table in tables.TABLES[1:]:
        files[table.file] = write.render(table, merged[table.name], known)
    return files


def _merged(
    folder: Path, table: tables.Table, fresh: dict[str, Derived], old: list[str]
) -> write.Rows:
    kept = write.read(folder / table.file, table, old)
    rows: write.Rows = {
        fact: rest for fact, members in kept.items() if (rest := members - fresh.keys())
    }
    for one in fresh.values():
        for name, fact in one.rows:
            if name == table.name:
                rows.setdefault(fact, set()).add(one.release)
    return rows


def _releases(folder: Path, fresh: dict[str, Derived], known: tuple[str, ...]) -> str:
    path = folder / tables.RELEASES.file
    lines = {}
    if path.exists():
        lines = {fields[0]: tuple(fields) for _, fields in tables.lines(path, tables.RELEASES)}
    lines |= {release: one.provenance for release, one in fresh.items()}
    body = ("\t".join(lines[release]) + "\n" for release in known)
    return tables.RELEASES.header + "".join(body)


def current(path: Path) -> str:
    """Text of a data file, empty when missing."""
    return path.read_text("utf-8") if path.exists() else ""
