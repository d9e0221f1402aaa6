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


@pytest.mark.parametrize(
    ("typed", "near", "far"),
    [
        ("OPS999", "OPS901", "OPS101"),
        ("ops3", "OPS303", "OPS201"),
        ("OPS777", "OPS101", "qqq"),
        ("OPS699", "OPS697", "OPS101"),
        ("OPS899", "OPS801", "OPS101"),
    ],
)
def test_an_unknown_rule_is_2_and_names_its_family(
    invoke: Invoke, typed: str, near: str, far: str
) -> None:
    found = invoke("explain", typed)
    assert (found.code, found.out) == (2, "")
    assert near in found.err
    assert far not in found.err


@pytest.mark.parametrize(
    ("typed", "op"),
    [
        ("torch.nonzero", "aten::nonzero"),
        ("Tensor.item", "aten::item"),
        ("torch.Tensor.item", "aten::item"),
        ("torch.linalg.eigh", "aten::linalg_eigh"),
        ("torch.nn.functional.linear", "aten::linear"),
        ("F.linear", "aten::linear"),
        ("torch.add", "aten::add.Tensor"),
    ],
)
def test_public_names_mean_their_operators(invoke: Invoke, typed: str, op: str) -> None:
    assert invoke("explain", typed).out.startswith(f"{op}  torch ")


def test_a_name_of_many_overloads_names_the_others(invoke: Invoke) -> None:
    assert "Other overloads: aten::add.Scalar, " in invoke("explain", "torch.add").out


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("addcmul_strided", "addcmul-strided"),
        ("F.grid_sample", "aten::grid_sampler"),
        ("torch.nn.functional.grid_sample", "aten::grid_sampler"),
        ("tf.nn.conv2d", "aten::conv2d"),
        ("Conv2D", "aten::conv2d"),
        ("cpu-fallbak", "cpu-fallback"),
    ],
)
def test_what_may_be_meant_is_named(invoke: Invoke, typed: str, near: str) -> None:
    found = invoke("explain", typed)
    assert (found.code, found.out) == (2, "")
    assert f"Did you mean {near}" in found.err
