from __future__ import annotations

from pathlib import Path

import pytest

from scanner.registry import RULES
from tests.cli.conftest import Invoke

PAGES = Path(__file__).parents[2] / "docs" / "rules"


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_explained_with_the_text_of_its_page(invoke: Invoke, rule: str) -> None:
    page = (PAGES / f"{rule}.md").read_text()
    assert invoke("explain", rule).out == page
    assert invoke("explain", rule.lower()).out == page
    assert invoke("explain", RULES[rule].name).out == page


def test_a_known_issue_is_explained(invoke: Invoke) -> None:
    out = invoke("explain", "addcmul-strided").out
    assert out.startswith("addcmul-strided: ")
    assert "torch >=1.12,<2.4 (the release's code was read or executed on both sides)" in out
    assert "https://github.com/pytorch/pytorch/issues/118115" in out


def test_an_op_names_its_known_issues(invoke: Invoke) -> None:
    _, known = invoke("explain", "aten::addcmul_").out.split("\nKnown issues:\n")
    assert "  addcmul-strided  [wrong-values, torch" in known


def test_an_unknown_rule_is_2(invoke: Invoke) -> None:
    found = invoke("explain", "OPS999")
    assert (found.code, found.out) == (2, "")
    assert "OPS101" in found.err
