from __future__ import annotations

import json
import re

import pytest

from opdb import query
from tests.cli.conftest import Invoke


def test_json_has_every_row(invoke: Invoke) -> None:
    found = invoke("db", "coverage", "--torch", "2.5.1", "--macos", "15.5", "-f", "json")
    document = json.loads(found.out)
    assert (document["torch"], document["macos"]) == ("2.5.1", "15.5")
    keys = {"name", "variant", "dtype", "direction", "status", "evidence", "chain"}
    assert {frozenset(row) for row in document["rows"]} == {frozenset(keys)}


def test_text_names_what_stops_an_entry(invoke: Invoke) -> None:
    out = invoke("db", "coverage", "--torch", "2.5.1").out
    (line,) = (each for each in out.splitlines() if re.match(r"kthvalue +forward", each))
    assert "(aten::kthvalue → aten::kthvalue.values)" in line


def test_the_page_holds_all_releases_and_needs_no_network(invoke: Invoke) -> None:
    page = invoke("db", "coverage", "-f", "html").out
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert data["releases"] == list(query.releases())
    assert {len(row[3]) for row in data["rows"]} == {len(query.releases())}
    assert not re.search(r"(src|href)=", page)


def test_evidence_that_does_not_exist_is_2(invoke: Invoke) -> None:
    found = invoke("db", "coverage", "--evidence", "rumour")
    assert (found.code, found.out) == (2, "")
    assert "database, simulated" in found.err


@pytest.mark.parametrize("macos", ["x", "", "9", "15.5,ram=1x"])
def test_a_macos_that_does_not_exist_is_2(invoke: Invoke, macos: str) -> None:
    found = invoke("db", "coverage", "--torch", "2.5.1", "--macos", macos)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("opscan: error: ")
