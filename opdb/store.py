"""Reads the data files, each at most once a process and only when asked."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from opdb import intervals, tables

__all__ = ["Span", "Store", "default"]

_FOLDER = Path(__file__).parent / "data" / "torch"


class Span(NamedTuple):
    """One fact about one op, and the releases in which it holds."""

    op: str
    values: tuple[str, ...]
    """Columns between the op and the releases."""
    ranges: tuple[tuple[int, int], ...]
    """Places in the list of releases or environments, both ends included."""

    def holds(self, place: int) -> bool:
        """Whether it holds in the release at a place."""
        return any(low <= place <= high for low, high in self.ranges)


class Store:
    """The data files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._texts: dict[str, str] = {}

    @cached_property
    def provenance(self) -> dict[str, tuple[str, ...]]:
        """Release → (wheel, hash, counts, tracker), oldest release first."""
        table = tables.RELEASES
        return {f[0]: tuple(f[1:]) for _, f in tables.lines(self.folder / table.file, table)}

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """Known releases, oldest first."""
        return tuple(self.provenance)

    @cached_property
    def places(self) -> dict[str, int]:
        """Release → its place in `releases`."""
        return intervals.positions(self.releases)

    @cached_property
    def simulations(self) -> dict[str, tuple[str, ...]]:
        """`release@macOS` → (GPU, digest, reference, samples, counts), in file order.

        Empty where nothing was simulated.
        """
        table = tables.SIMULATIONS
        path = self.folder / table.file
        if not path.exists():
            return {}
        return {f"{f[0]}@{f[1]}": tuple(f[2:]) for _, f in tables.lines(path, table)}

    @cached_property
    def environments(self) -> dict[str, int]:
        """`release@macOS` → its place in `simulations`."""
        return intervals.positions(tuple(self.simulations))

    def places_of(self, table: tables.Table) -> dict[str, int]:
        """What the ranges of a table's last column run over."""
        return self.environments if table is tables.SIMULATED else self.places

    def find(self, table: tables.Table, op: str) -> list[Span]:
        """Facts about one op. Looks only at its own lines, so that a single question is fast."""
        found: list[Span] = []
        if "\t" in op or "\n" in op:
            return found
        text = self._text(table)
        place = text.find(f"\n{op}\t", len(table.header) - 1)
        while place >= 0:
            end = text.find("\n", place + 1)
            number = text.count("\n", 0, place + 1) + 1
            found.append(self._span(table, number, text[place + 1 : end].split("\t")))
            place = text.find(f"\n{op}\t", end)
        return found

    def all(self, table: tables.Table) -> list[Span]:
        """Every fact of a table, in file order."""
        path = self.folder / table.file
        return [self._span(table, number, fields) for number, fields in tables.lines(path, table)]

    def _text(self, table: tables.Table) -> str:
        if table.name not in self._texts:
            self._texts[table.name] = tables.text(self.folder / table.file, table)
        return self._texts[table.name]

    def _span(self, table: tables.Table, number: int, fields: list[str]) -> Span:
        path = self.folder / table.file
        if len(fields) != len(table.columns) or not all(fields):
            raise tables.corrupt(path, number, f"expected {len(table.columns)} columns")
        try:
            ranges = intervals.decode(fields[-1], self.places_of(table))
        except ValueError as error:
            raise tables.corrupt(path, number, str(error)) from None
        return Span(fields[0], tuple(fields[1:-1]), tuple(ranges))


default = Store(_FOLDER)
"""The data that opscan is delivered with."""
