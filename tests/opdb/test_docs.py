"""The page about opdb holds numbers; they must be those of the data."""

from collections import Counter
from pathlib import Path

import pytest

from opdb import tables
from opdb.store import default

PAGE = (Path(__file__).parents[2] / "docs" / "opdb.md").read_text("utf-8")


@pytest.mark.parametrize("release", default.releases)
def test_the_table_of_releases_is_current(release):
    place = default.places[release]
    held = [span for span in default.all(tables.MPS) if span.holds(place)]
    each = Counter(span.values for span in held)
    keys = Counter(key for key, _ in (span.values for span in held))
    ops = sum(span.holds(place) for span in default.all(tables.OPS))
    numbers = [keys["MPS"], *(each["MPS", what] for what in ("kernel", "fallback", "raises"))]
    numbers += [keys["SparseMPS"], keys["SparseCsrMPS"], ops]
    assert f"| {release} | {' | '.join(map(str, numbers))} |" in PAGE
