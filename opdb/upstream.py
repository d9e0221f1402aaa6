"""What PyTorch's own tests expect of OpInfo entries on MPS: a layer of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from opdb import intervals, store, tables

__all__ = ["OWN", "Expected", "Verdict", "expected"]

Verdict = Literal["xfail", "skip", "pass"]

OWN = "own:"
"""Marks lines that hold besides those of the list: what an entry's definition says."""

_GRADIENTS = frozenset({"float16", "float32"})
"""`MPS_GRAD_DTYPES` of PyTorch's test/test_mps.py, which wheels do not have; what their lists say
of gradients names no other."""


class _Line(NamedTuple):
    direction: str
    kind: str
    dtypes: str

    def about(self, direction: str, dtype: str) -> bool:
        """Gradient tests run the forward as well, with its expectations."""
        reaches = self.direction in {direction, "forward"}
        return reaches and (self.dtypes == "*" or dtype in self.dtypes.split(","))


class Expected:
    """The expectations of one release on one macOS."""

    def __init__(self, lines: Mapping[str, list[_Line]]) -> None:
        self._lines = lines

    def of(self, name: str, variant: str, dtype: str, direction: str) -> Verdict:
        """What is expected of an entry; what is not run says nothing."""
        if direction == "gradient" and dtype not in _GRADIENTS:
            return "skip"
        key = name + variant
        lines = self._lines.get(key) or self._lines.get("*", [])
        lines = [*lines, *self._lines.get(OWN + key, [])]
        kinds = {line.kind for line in lines if line.about(direction, dtype)}
        return "skip" if "skip" in kinds else "xfail" if "xfail" in kinds else "pass"


def expected(release: str, macos: str) -> Expected | None:
    """Expectations of a release; None for one whose wheel does not have them."""
    place = store.default.places[release]
    major = macos.partition(".")[0]
    found: dict[str, list[_Line]] = {}
    for _, fields in tables.lines(store.default.folder / tables.UPSTREAM.file, tables.UPSTREAM):
        key, direction, kind, dtypes, systems, releases = fields
        spans = intervals.decode(releases, store.default.places)
        here = any(low <= place <= high for low, high in spans)
        if here and any(system.partition(".")[0] == major for system in systems.split(",")):
            found.setdefault(key, []).append(_Line(direction, kind, dtypes))
    return Expected(found) if found else None
