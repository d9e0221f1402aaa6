"""The support matrix of a release as text: a line for each entry and direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from opdb.coverage import Row
from scanner.records import Status
from scanner.statuses import SEVERITY_ORDER

__all__ = ["coverage_text"]

_QUIET: frozenset[Status] = frozenset({"native", "composite"})


def coverage_text(rows: Iterable[Row], title: str) -> str:
    """Counts first, then every entry: what runs, and for which dtypes it does not and why."""
    known = list(rows)
    counts = Counter(row.status for row in known)
    total = ", ".join(f"{counts[status]} {status}" for status in SEVERITY_ORDER if counts[status])
    return "\n".join([title, f"{len(known)} rows: {total or 'none'}", "", *_lines(known), ""])


def _lines(rows: list[Row]) -> Iterator[str]:
    for (name, variant, direction), group in groupby(rows, _entry):
        label = f"{name}.{variant}" if variant else name
        yield f"{label:<44} {direction:<9} {'; '.join(_statuses(list(group)))}"


def _entry(row: Row) -> tuple[str, str, str]:
    return row.name, row.variant, row.direction


def _statuses(rows: list[Row]) -> Iterator[str]:
    """dtypes by status and reason, best last."""
    ordered = sorted(rows, key=lambda row: (SEVERITY_ORDER.index(row.status), row.chain))
    for (status, chain), group in groupby(ordered, lambda row: (row.status, _why(row))):
        dtypes = ", ".join(row.dtype for row in group)
        yield f"{status} {dtypes}{chain}"


def _why(row: Row) -> str:
    return "" if row.status in _QUIET else f" ({' → '.join(row.chain)})"
