"""The support matrix of all releases as one page that needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from string import Template
from typing import Any

from opdb.coverage import Row
from scanner.statuses import SEVERITY_ORDER

__all__ = ["coverage_html"]

_LETTERS = {status: chr(ord("a") + place) for place, status in enumerate(SEVERITY_ORDER)}
_ABSENT = "-"


def coverage_html(by_release: Mapping[str, Iterable[Row]], macos: str | None) -> str:
    """The page; releases in the order given, statuses as one letter a release."""
    releases = list(by_release)
    entries: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for release, rows in by_release.items():
        for row in rows:
            key = (row.name, row.variant, row.direction, row.dtype)
            entries.setdefault(key, {})[release] = row
    data = {
        "releases": releases,
        "macos": macos,
        "statuses": {letter: status for status, letter in _LETTERS.items()},
        "rows": [_packed(key, found, releases) for key, found in entries.items()],
    }
    template = files("scanner.report").joinpath("templates/coverage.html").read_text("utf-8")
    return Template(template).substitute(data=_script(data))


def _packed(
    key: tuple[str, str, str, str], found: Mapping[str, Row], releases: list[str]
) -> list[Any]:
    """Name, direction, dtype, a letter for each release, and the newest reason."""
    name, variant, direction, dtype = key
    letters = "".join(
        _LETTERS[found[release].status] if release in found else _ABSENT for release in releases
    )
    bad = [row for row in found.values() if row.status not in {"native", "composite"}]
    reason = " → ".join(bad[-1].chain) if bad else ""
    return [f"{name}.{variant}" if variant else name, direction, dtype, letters, reason]


def _script(data: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
