from __future__ import annotations

import re

import pytest

from scanner.judge.rules import (
    RULES,
    about_capture,
    about_execution,
    about_issues,
    about_ops,
    contradiction,
    measured,
    whole,
)
from scanner.judge.rules.equivalents import EQUIVALENTS
from scanner.registry import RULES as EVERY_RULE
from scanner.rule import Documented


@pytest.mark.parametrize("rule", EVERY_RULE.values(), ids=EVERY_RULE.keys())
def test_every_rule_is_documented(rule: Documented) -> None:
    assert re.fullmatch(r"OPS[1-9]\d\d", rule.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    assert rule.summary.endswith(".")
    # A source rule is about one call, and says what to write instead.
    assert len(rule.explanation) > (100 if rule.id.startswith("OPS6") else 200)
    assert "## What to do" in rule.explanation


def test_ids_and_names_are_unique_and_sorted() -> None:
    by_device = (*measured.RULES, *measured.VARIANT_RULES)
    assert list(RULES) == sorted(RULES)
    about_calls = (about_ops, about_issues, about_execution)
    families = (*about_calls, by_device, whole.RULES, contradiction.RULES, about_capture)
    assert len(RULES) == sum(map(len, families))
    assert len({rule.name for rule in RULES.values()}) == len(RULES)


def test_families_follow_the_first_digit() -> None:
    assert {rule.id[3] for rule in about_ops} == {"1"}
    assert {rule.id[3] for rule in about_execution} == {"3"}
    assert {rule.id[3] for rule in about_capture} == {"9"}


def test_scan_problems_never_block_by_severity() -> None:
    assert {rule.severity for rule in (*about_capture, *contradiction.RULES)} == {"note"}


def test_equivalents_name_ops_without_overload() -> None:
    assert all(re.fullmatch(r"aten::\w+", op) for op in EQUIVALENTS)
