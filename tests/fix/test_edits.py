"""Edits that meet, and corrections that have no end."""

from __future__ import annotations

import ast
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.fix.edits import Change, apart, applied
from scanner.fix.mend import Mender, UnstableError
from scanner.source.check import Checker
from scanner.source.here import Here
from scanner.source.interface import Correction, Edit, Hit, SourceRule, Span, source_rule
from scanner.source.module import Module
from scanner.source.triggers import names
from tests.fix.cases import nothing_accepted


def change(*spans: tuple[int, int], rule: str = "OPS600") -> Change:
    edits = tuple(Edit(Span(1, start, 1, end), "x") for start, end in spans)
    return Change(rule, edits[0].span, edits)


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (change((1, 3)), change((3, 5)), True),
        (change((1, 3)), change((3, 3)), True),
        (change((3, 3)), change((3, 5)), True),
        (change((3, 3)), change((3, 3), rule="OPS601"), False),
        (change((1, 4)), change((2, 2)), False),
        (change((1, 4)), change((3, 6)), False),
        (change((1, 2), (7, 9)), change((3, 4), (8, 8)), False),
    ],
)
def test_changes_that_meet_wait(first: Change, second: Change, both: bool) -> None:
    assert apart([second, first]) == ([first, second] if both else [first])


def test_the_order_of_findings_does_not_matter() -> None:
    changes = [change((1, 4)), change((3, 6)), change((5, 8)), change((8, 8))]
    assert {tuple(apart(order)) for order in permutations(changes)} == {
        (changes[0], changes[2], changes[3])
    }


@given(
    st.text("ab\r\n\f\x1c\u2028é", max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.text("xy", max_size=3))),
)
def test_edits_are_what_slices_are(text: str, cuts: list[tuple[int, int, str]]) -> None:
    text = f"'''{text}'''"
    module = Module(text)
    changes, wanted, at = [], "", 0
    for start, length, new in sorted(cuts):
        end = min(start + length, len(text))
        if start < at or (start > 0 and text[start - 1 : start + 1] == "\r\n") or start > len(text):
            continue
        if text[end - 1 : end + 1] == "\r\n":
            continue
        changes.append(Edit(Span(*_place(text, start), *_place(text, end)), new))
        wanted += text[at:start] + new
        at = end + (start == end)
        wanted += text[end:at]
    assert applied(module, changes) == wanted + text[at:]


def _place(text: str, offset: int) -> tuple[int, int]:
    lines = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(lines), len(lines[-1]) + 1


def swapping(id: str, old: str, new: str) -> SourceRule:
    @source_rule(id, "swap", "note", since="0.1.0", on=[names(f"torch.{old}")])
    def swap(node: ast.AST, here: Here) -> Hit:
        """A rule."""
        edit = Edit(here.module.span(node), f"torch.{new}")
        return here.hit(node, "m", "r", correction=Correction("d", True, (edit,)))

    return swap


def test_corrections_that_undo_one_another_change_nothing() -> None:
    rules = [swapping("OPS698", "a", "b"), swapping("OPS699", "b", "a")]
    mender = Mender(Checker(rules), unsafe=False, accepts=nothing_accepted)
    with pytest.raises(UnstableError):
        mender.mend("import torch\ntorch.a\n")


def test_a_correction_that_makes_no_python_is_left_out_and_others_are_made() -> None:
    rules = [swapping("OPS698", "a", "1 +"), swapping("OPS699", "b", "c")]
    mender = Mender(Checker(rules), unsafe=False, accepts=nothing_accepted)
    mended = mender.mend("import torch\ntorch.a\ntorch.b\n")
    assert mended.text == "import torch\ntorch.a\ntorch.c\n"
    assert [each.rule for each in mended.after] == ["OPS698"]


def test_a_correction_that_libcst_does_not_take_for_python_is_left_out() -> None:
    rules = [swapping("OPS698", "a", "b\n(x): int"), swapping("OPS699", "b", "c")]
    mender = Mender(Checker(rules), unsafe=False, accepts=nothing_accepted)
    assert (
        mender.mend("import torch\ntorch.a\ntorch.b\n").text == "import torch\ntorch.a\ntorch.c\n"
    )
    unread = "import torch\n(y): int\n"
    assert mender.mend(f"{unread}torch.a\n").text == f"{unread}torch.c\n(x): int\n"
