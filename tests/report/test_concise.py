from __future__ import annotations

import re

import msgspec
from syrupy.assertion import SnapshotAssertion

from scanner.report import Style, render
from tests.report.sample_report import BOTH, clean_report, report, whole_report


def test_one_finding_a_line(snapshot: SnapshotAssertion) -> None:
    text = render(report(), "concise", Style())
    assert text == snapshot
    assert len(text.splitlines()) == sum(len(model.findings) for model in report().models)
    for line in text.splitlines():
        assert re.match(r"[\w./]+(:\d+)?: OPS\d{3} (error|warning|note) \S", line)


def test_golden_of_whole_steps(snapshot: SnapshotAssertion) -> None:
    assert render(whole_report(), "concise", Style()) == snapshot


def test_several_targets_are_named() -> None:
    text = render(report(*BOTH), "concise", Style())
    per_target = {"[torch==2.9.1]": 5, "[torch==2.14.0]": 3}
    assert {target: text.count(target) for target in per_target} == per_target
    assert "[torch" not in render(report(), "concise", Style())


def test_nothing_to_say_is_nothing() -> None:
    assert render(clean_report(), "concise", Style()) == ""


def test_suppressed_findings_are_left_out() -> None:
    found = report()
    model = found.models[0]
    quiet = tuple(msgspec.structs.replace(each, suppressed="known") for each in model.findings)
    muted = msgspec.structs.replace(found, models=(msgspec.structs.replace(model, findings=quiet),))
    assert render(muted, "concise", Style()) == ""
