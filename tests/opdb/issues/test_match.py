from __future__ import annotations

from pathlib import Path

import pytest

from opdb.issues.book import IssueBook
from opdb.issues.calls import read_call
from opdb.issues.match import find
from opdb.issues.reading import IssueDataError
from scanner.records import Target

ISSUE = """
[constants]
LIMIT = 4
[[issue]]
id = "{id}"
title = "goes wrong"
ops = {ops}
effect = "wrong-values"
condition = "self.shape[0] > LIMIT"
torch = ["<2.4"]
hits = ["add.Tensor(self=float32[5])"]
"""


def book(folder: Path, ops: str) -> IssueBook:
    (folder / "a.toml").write_text(ISSUE.format(id="a", ops=ops))
    return IssueBook(folder)


def found(known: IssueBook, call: str, version: str = "2.3.1") -> list[str]:
    target = Target(framework="torch", version=version)
    return [match.issue.id for match in find(known, read_call(call), target)]


@pytest.mark.parametrize(
    ("ops", "named", "not_named"),
    [
        ('["add"]', ("add.Tensor", "add_.Scalar", "add.out"), ("addmm", "add_relu")),
        ('["add_"]', ("add_.Tensor",), ("add.Tensor", "add.out")),
        ('["add.Tensor"]', ("add.Tensor",), ("add_.Tensor", "add.Scalar")),
        ('["__and__"]', ("__and__.Tensor",), ("__and",)),
        ('["*"]', ("add.Tensor", "mul_.Scalar"), ()),
    ],
)
def test_which_overloads_an_entry_names(
    tmp_path: Path, ops: str, named: tuple[str, ...], not_named: tuple[str, ...]
) -> None:
    known = book(tmp_path, ops)
    assert all(found(known, f"{op}(self=float32[5])") == ["a"] for op in named)
    assert not any(found(known, f"{op}(self=float32[5])") for op in not_named)


def test_condition_and_release_must_both_fit(tmp_path: Path) -> None:
    known = book(tmp_path, '["add"]')
    assert not found(known, "add.Tensor(self=float32[4])")
    assert not found(known, "add.Tensor(self=float32[5])", "2.4.0")


def test_a_file_with_a_mistake_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('[[issue]]\nid = "x"\n')
    with pytest.raises(IssueDataError, match=r"bad\.toml: .*title"):
        _ = IssueBook(tmp_path).entries
