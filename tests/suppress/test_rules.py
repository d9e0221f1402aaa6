from __future__ import annotations

import pytest

from scanner.registry import RULES as EVERY_RULE
from scanner.suppress.interface import Entry, can_be_suppressed
from scanner.suppress.rules import RULES, Accepted

FIXED = Entry(rule="OPS101", op="aten::mm", model="m.py:Net", fingerprint="a" * 64, count=2)
CASES = {
    "OPS801": Accepted(subject="the ignore of OPS102", unused=True),
    "OPS802": Accepted(subject="the ignore of OPS102", expired="2027-03-01"),
    "OPS803": Accepted(subject="the ignore of OPS1", rule="OPS1", unknown=True),
    "OPS804": Accepted(subject="`# opscan: ignore`", mistake="it names no rule"),
    "OPS805": Accepted(subject="", fixed=FIXED, left=1),
}


@pytest.mark.parametrize("expected", CASES)
def test_each_case_has_one_rule(expected: str) -> None:
    said = {rule.id: rule.check(CASES[expected]) for rule in RULES}
    assert [id for id, advice in said.items() if advice] == [expected]


def test_nothing_is_said_of_an_ignore_that_is_used() -> None:
    assert [rule.id for rule in RULES if rule.check(Accepted(subject="the ignore"))] == []


def test_they_cannot_be_ignored_themselves_nor_can_scan_problems() -> None:
    assert {rule.id[:4] for rule in RULES} == {"OPS8"}
    protected = {rule for rule in EVERY_RULE if not can_be_suppressed(rule)}
    assert protected == {rule for rule in EVERY_RULE if rule[3] in "89"}


def test_what_is_fixed_is_named() -> None:
    (advice,) = filter(None, (rule.check(CASES["OPS805"]) for rule in RULES))
    assert advice.message == (
        "the baseline holds OPS101 about aten::mm in m.py:Net, which is fixed; 1 of 3 are left"
    )
