from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from scanner.judge.gate import Gate
from scanner.records import (
    Capture,
    Coverage,
    Location,
    Measurement,
    Report,
    SourceScan,
)
from tests.suppress.samples import (
    comment,
    finding,
    hidden,
    ignore,
    model,
    report,
    row,
    stale,
    under,
)

BROKEN = report(model(finding("OPS101", 5), finding("OPS102", 9, severity="warning")))


def test_a_comment_hides_its_rule_on_its_line() -> None:
    found = under(BROKEN, comment(5, "OPS101", reason="once an epoch"))
    assert hidden(found) == [("OPS101", "once an epoch"), ("OPS102", None)]
    assert found.models[0].findings[0].suppressed_by == "line"
    assert (found.summary.errors, found.summary.warnings, found.exit_code) == (0, 1, 0)
    assert stale(found) == []


@pytest.mark.parametrize(
    "line", [comment(6, "OPS101"), comment(5, "OPS102"), comment(5, "OPS101", file="other.py")]
)
def test_a_comment_hides_nothing_else(line: Any) -> None:
    assert hidden(under(BROKEN, line)) == [("OPS101", None), ("OPS102", None)]


def test_any_line_of_a_statement_will_do_where_its_end_is_known() -> None:
    for end in (7, 2**62):  # reports from files may say anything
        place = Location(file="model.py", line=5, end_line=end)
        found = under(report(model(finding(location=place))), comment(7, "OPS101"))
        assert hidden(found) == [("OPS101", "known")]


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"rule": "OPS101"}, True),
        ({"rule": "OPS102"}, False),
        ({"op": "aten::mm"}, True),
        ({"op": "aten::m*"}, True),
        ({"op": "aten::bmm"}, False),
        ({"dtype": "float32"}, True),
        ({"dtype": "float16"}, False),
        ({"file": "model.py"}, True),
        ({"file": "nets/*.py"}, True),
        ({"file": "./nets/*.py"}, True),
        ({"file": "**/nets/model.py"}, True),
        ({"file": "**/model.py"}, True),
        ({"file": "**/odel.py"}, False),
        ({"file": "*.txt"}, False),
        ({"model": "Net"}, True),
        ({"model": "model.py:Net"}, True),
        ({"model": "Other"}, False),
        ({"target": "torch==2.9*"}, True),
        ({"target": "torch==2.8*"}, False),
        ({"rule": "OPS101", "op": "aten::bmm"}, False),
        ({"op": "aten::mm", "expires": date(2027, 3, 1)}, True),
        ({"op": "aten::mm", "expires": date(2027, 2, 28)}, False),
    ],
    ids=str,
)
def test_every_field_of_a_table_must_fit(fields: dict[str, Any], fits: bool) -> None:
    found = under(report(model(finding())), ignore(**fields), prefix="nets/")
    assert hidden(found) == [("OPS101", "accepted" if fits else None)]
    assert found.exit_code == (0 if fits else 1)


def test_an_op_without_overload_means_all_of_them() -> None:
    found = report(model(finding(op="aten::add.Tensor")))
    assert hidden(under(found, ignore(op="aten::add"))) == [("OPS101", "accepted")]
    assert hidden(under(found, ignore(op="aten::add.Scalar"))) == [("OPS101", None)]


def test_unused_comments_are_stale_where_their_rule_was_asked() -> None:
    found = report(model(rows=(row(5),)))
    assert stale(under(found, comment(5, "OPS101"))) == ["OPS801"]
    assert under(found, comment(5, "OPS101")).summary.warnings == 1
    assert stale(under(found, comment(6, "OPS101"))) == []  # nothing was run there
    assert stale(under(found, comment(5, "OPS106"))) == []  # no device was asked
    assert stale(under(found, comment(5, "OPS601"))) == []  # no source rule was asked


def test_a_rule_of_devices_is_asked_where_one_answered() -> None:
    for status, expected in (("native", ["OPS801"]), ("unknown", [])):
        measured = Measurement(device="cpu", status=status)  # type: ignore[arg-type]
        found = report(model(rows=(row(5, measurement=measured),)))
        assert stale(under(found, comment(5, "OPS201"))) == expected


@pytest.mark.parametrize(
    ("roots", "read"),
    [((".",), True), (("nets",), True), (("nets/a.py",), True), (("net",), False)],
)
def test_a_source_rule_is_asked_in_files_that_were_read(roots: tuple[str, ...], read: bool) -> None:
    found = report(source=SourceScan(files=1, roots=roots))
    line = comment(3, "OPS601", file="nets/a.py")
    assert stale(under(found, line)) == (["OPS801"] if read else [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rule": "OPS102", "file": "model.py"}, True),
        ({"rule": "OPS102", "model": "Net"}, True),
        ({"op": "aten::gone", "model": "Net"}, True),
        ({"rule": "OPS102", "op": "aten::mm"}, True),
        ({"rule": "OPS102", "op": "aten::gone"}, False),  # perhaps another model has it
        ({"rule": "OPS102"}, False),  # a policy of the project
        ({"rule": "OPS102", "file": "other.py"}, False),
        ({"rule": "OPS102", "model": "Net", "target": "torch==2.8*"}, False),
        ({"rule": "OPS201", "model": "Net"}, False),
    ],
    ids=str,
)
def test_unused_tables_are_stale_where_they_would_have_been_used(
    fields: dict[str, Any], expected: bool
) -> None:
    found = under(report(model(rows=(row(5),))), ignore(**fields))
    assert stale(found) == (["OPS801"] if expected else [])


def test_an_expired_table_is_said_and_hides_nothing() -> None:
    found = under(BROKEN, ignore(rule="OPS101", expires=date(2027, 2, 28)))
    assert (stale(found), found.exit_code) == (["OPS802"], 1)
    assert found.suppression
    (said,) = found.suppression.findings
    assert "2027-02-28" in said.message
    assert said.location == Location(file="p.toml", line=3)
    assert stale(under(BROKEN, ignore(rule="OPS101", expires=date(2027, 3, 1)))) == []


def test_unknown_and_protected_rules_are_said() -> None:
    found = under(BROKEN, comment(5, "OPS1O1", "OPS901"), ignore(rule="OPS801"))
    assert stale(found) == ["OPS803", "OPS803", "OPS803"]
    assert found.suppression
    first, second, _ = found.suppression.findings
    assert "OPS101" in first.remedy
    assert "cannot be ignored" in second.message


@pytest.mark.parametrize("line", [comment(5, "OPS101", reason=""), comment(5)])
def test_a_comment_without_reason_or_rule_hides_nothing(line: Any) -> None:
    found = under(BROKEN, line)
    assert (stale(found), found.exit_code) == (["OPS804"], 1)


def test_neither_problems_nor_incompleteness_can_be_hidden() -> None:
    problem = finding("OPS901", severity="note", op="", location=None)
    lost = model(problem, capture=None, ops=(), coverage=Coverage(by_config={}, by_call={}))
    for accepted in (ignore(model="Net"), ignore(rule="OPS901"), ignore(file="*")):
        found = under(report(lost), accepted)
        assert hidden(found) == [("OPS901", None)]
        assert found.exit_code == 3
    part = model(finding(), capture=Capture(method="real", complete=False))
    assert under(report(part), comment(5, "OPS101")).exit_code == 3
    failed = finding("OPS903", severity="note", op="", location=None)
    assert under(report(model(failed, capture=None)), ignore(file="*")).exit_code == 2


def test_the_gate_counts_stale_ignores() -> None:
    found = under(report(model(rows=(row(5),))), comment(5, "OPS101"), gate=Gate(fail_on="warning"))
    assert found.exit_code == 1


def test_findings_about_source_code_are_ignored_alike() -> None:
    source = SourceScan(files=1, roots=("model.py",), findings=(finding("OPS601", 3, op=""),))
    found = under(report(source=source), comment(3, "OPS601"))
    assert found.source
    assert found.source.findings[0].suppressed == "known"
    assert found.exit_code == 0


def test_it_is_idempotent_and_forgets_what_was_before() -> None:
    once = under(BROKEN, comment(5, "OPS101"))
    assert under(once, comment(5, "OPS101")) == once
    assert under(once) == BROKEN
    assert under(BROKEN) == BROKEN


def test_reports_keep_the_comments_that_were_read() -> None:
    line = comment(5, "OPS101")
    found = under(BROKEN, line)
    assert found.suppression
    assert found.suppression.lines == (line,)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Report) == found
