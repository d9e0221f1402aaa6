from __future__ import annotations

import re

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.report import Style, render
from tests.report.sample_report import (
    BOTH,
    clean_report,
    report,
    simulated_report,
    timed_report,
    whole_report,
)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def lines(width: int = 100, verbosity: int = 0) -> list[str]:
    return render(report(), "text", Style(width=width, verbosity=verbosity)).splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_one_target(width: int, snapshot: SnapshotAssertion) -> None:
    assert render(report(), "text", Style(width=width)) == snapshot


def test_two_targets(snapshot: SnapshotAssertion) -> None:
    assert render(report(*BOTH), "text", Style(width=100)) == snapshot


def test_verbose(snapshot: SnapshotAssertion) -> None:
    assert render(report(), "text", Style(width=100, verbosity=1)) == snapshot


@pytest.mark.parametrize("verbosity", [0, 1])
def test_timed(verbosity: int, snapshot: SnapshotAssertion) -> None:
    assert render(timed_report(), "text", Style(width=100, verbosity=verbosity)) == snapshot


def test_clean(snapshot: SnapshotAssertion) -> None:
    assert render(clean_report(), "text", Style(width=100)) == snapshot


def test_simulated(snapshot: SnapshotAssertion) -> None:
    text = render(simulated_report(), "text", Style(width=100))
    assert text == snapshot
    assert "Simulated: metal-sim (Apple M2" in text
    assert "Run on" not in text


@pytest.mark.parametrize("width", [60, 100])
def test_whole_steps(width: int, snapshot: SnapshotAssertion) -> None:
    text = render(whole_report(), "text", Style(width=width))
    assert text == snapshot
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, lines(width))) <= width


def test_the_summary_is_the_first_line_and_all_of_quiet() -> None:
    first = "3 errors, 1 warning in 1 model on torch 2.9.1; 2 more not judged; incomplete"
    assert lines()[0] == first
    assert lines(verbosity=-1) == [first]


def test_worst_comes_first_and_fine_rows_only_when_asked() -> None:
    def statuses(found: list[str]) -> list[str]:
        rows = (re.match(r"  (\w+) +\w+::", line) for line in found)
        return [row[1] for row in rows if row]

    worst_first = ["unsupported"] * 4 + ["fallback", "unknown"]
    assert statuses(lines()) == worst_first
    assert statuses(lines(verbosity=1)) == [*worst_first, "composite", "native", "native"]


def test_nothing_unjudged_is_called_supported() -> None:
    text = "\n".join(lines())
    assert "not judged  torchvision::nms" in text
    assert "not judged  the branch at nets/gp.py:33" in text
    assert "verified" not in text
    assert "compatible" not in text


def test_an_incomplete_scan_without_findings_does_not_look_clean() -> None:
    found = clean_report()
    summary = msgspec.structs.replace(found.summary, complete=False)
    text = render(
        msgspec.structs.replace(found, summary=summary), "text", Style(color=True, width=100)
    )
    assert "incomplete" in text.splitlines()[0]
    assert "\x1b[1;32m" not in text.splitlines()[0]


def test_nothing_judged_does_not_look_clean() -> None:
    found = report()
    nothing = msgspec.structs.replace(found, models=found.models[1:])
    text = render(nothing, "text", Style(width=100))
    assert text.splitlines()[0] == "nothing judged on torch 2.9.1; 2 not judged; incomplete"


def test_code_in_a_remedy_keeps_its_lines() -> None:
    found = report()
    advice = "add to the file:\n    def opscan_model():\n        return Net()"
    finding = msgspec.structs.replace(found.models[1].findings[0], remedy=advice)
    model = msgspec.structs.replace(found.models[1], findings=(finding,))
    lines = render(msgspec.structs.replace(found, models=(model,)), "text", Style()).splitlines()
    assert "         def opscan_model():" in lines
    assert "             return Net()" in lines


def test_color_changes_nothing_but_color() -> None:
    plain = render(report(), "text", Style(width=100))
    colored = render(report(), "text", Style(width=100, color=True))
    assert "\x1b[" not in plain
    assert "\x1b[" in colored
    assert [line.rstrip() for line in ANSI.sub("", colored).splitlines()] == plain.splitlines()


def test_hostile_source_lines_cannot_steer_the_terminal() -> None:
    found = report()
    hostile = "x = 1  # \x1b[2J\x07\u202e[red]gone[/red]"
    model = found.models[0]
    bad = msgspec.structs.replace(model.ops[4].locations[0], code=hostile)
    ops = tuple(msgspec.structs.replace(row, locations=(bad,)) for row in model.ops)
    hostile_report = msgspec.structs.replace(
        found, models=(msgspec.structs.replace(model, ops=ops, name=hostile),)
    )
    for name in ("text", "concise"):
        text = render(hostile_report, name, Style(width=200))
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    assert "[red]gone[/red]" in render(hostile_report, "text", Style(width=200))
