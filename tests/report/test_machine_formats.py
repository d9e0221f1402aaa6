"""Formats for machines: golden output, the official schemas, and hostile strings."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from scanner.judge.gate import Gate, exit_code, summarize
from scanner.records import Finding, Fix, Location, Report, SourceScan, Suppression
from scanner.report import FORMATS, Style, render, sarif_results
from scanner.report import markdown as markdown_format
from tests.report.readers import check
from tests.report.sample_report import (
    BOTH,
    clean_report,
    report,
    simulated_report,
    timed_report,
    whole_report,
)

MACHINE = ("jsonl", "sarif", "junit", "github", "markdown")
HOSTILE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def finding(**other: Any) -> Finding:
    given: dict[str, Any] = {
        "rule": "OPS101",
        "severity": "error",
        "target": "",
        "op": "",
        "message": "it is 100% wrong: [a](b), {0}",
        "remedy": "change it",
        "location": Location(
            file="a b/%41.py", line=3, column=5, end_line=3, end_column=9, code="x | y"
        ),
        "fingerprint": "f1",
    }
    return Finding(**(given | other))


def source_report() -> Report:
    """Findings of source files: suppressed in each way, with a fix, over several lines."""
    where = Location(file="/abs/c.py", line=1, column=2, end_line=4, end_column=1)
    found = (
        finding(fix=Fix(description="Mend it", safe=True)),
        finding(suppressed="we know", suppressed_by="line", severity="warning"),
        finding(suppressed="in known.json", suppressed_by="baseline", baseline_state="unchanged"),
        finding(location=where, severity="warning", rule="OPS999", baseline_state="new"),
    )
    base = clean_report()
    source = SourceScan(files=3, findings=found)
    stale = Suppression(findings=(finding(severity="note", location=None),))
    return msgspec.structs.replace(
        base,
        source=source,
        suppression=stale,
        summary=summarize(base.models, source, stale),
        exit_code=exit_code(base.models, Gate(), source, stale),
    )


SAMPLES = {
    "model": report(),
    "targets": report(*BOTH),
    "clean": clean_report(),
    "timed": timed_report(),
    "whole": whole_report(),
    "simulated": simulated_report(),
    "source": source_report(),
}
every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


@pytest.mark.parametrize("name", MACHINE)
@pytest.mark.parametrize("which", ["targets", "source"])
def test_golden(name: str, which: str, snapshot: SnapshotAssertion) -> None:
    assert render(SAMPLES[which], name, Style()) == snapshot


@pytest.mark.parametrize("name", MACHINE)
@every_sample
def test_every_report_validates(name: str, sample: Report) -> None:
    check(name, render(sample, name, Style()))


@every_sample
def test_sarif_has_a_result_or_notification_for_every_finding(sample: Report) -> None:
    (run,) = json.loads(render(sample, "sarif", Style()))["runs"]
    told = run["invocations"][0]["toolExecutionNotifications"]
    named = [each["ruleId"] for each in run["results"]]
    named += [each["associatedRule"]["id"] for each in told if "associatedRule" in each]
    lines = map(json.loads, render(sample, "jsonl", Style()).splitlines())
    assert sorted(named) == sorted(each["rule"] for each in lines if each["type"] == "finding")
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])


def test_sarif_says_when_opscan_failed() -> None:
    def succeeded(sample: Report) -> Any:
        (run,) = json.loads(render(sample, "sarif", Style()))["runs"]
        return run["invocations"][0]["executionSuccessful"]

    assert succeeded(clean_report()) is True
    assert succeeded(report()) is False  # gone.py is missing


def test_sarif_keeps_the_worst_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scanner.report.sarif.MAX_RESULTS", 1)
    (run,) = json.loads(render(source_report(), "sarif", Style()))["runs"]
    assert [each["level"] for each in run["results"]] == ["error"]
    told = run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]
    assert told.startswith("4 of 5 results are left out")
    assert sarif_results.MAX_RESULTS == 5000


def test_sarif_fingerprints_of_equal_findings_differ_in_the_last_part() -> None:
    (run,) = json.loads(render(source_report(), "sarif", Style()))["runs"]
    hashes = [each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]]
    assert sorted(hashes) == [f"f1:{number}" for number in range(1, 6)]


def test_github_shows_ten_of_each_kind_and_counts_the_rest() -> None:
    many = tuple(finding(severity=kind) for kind in ("warning", "error") for _ in range(13))
    source = SourceScan(files=1, findings=many)
    text = render(msgspec.structs.replace(clean_report(), source=source), "github", Style())
    kinds = [line.split(" ")[0] for line in text.splitlines()]
    assert kinds == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"]
    assert "3 more errors and 3 more warnings" in text


def test_github_escapes_and_omits_columns_of_several_lines() -> None:
    lines = render(source_report(), "github", Style()).splitlines()
    assert "file=a b/%2541.py,line=3,endLine=3,col=5,endColumn=9::it is 100%25 wrong" in lines[0]
    assert "%0Achange it" in lines[0]
    assert "line=1,endLine=4::" in lines[1]


def test_markdown_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown_format, "MAX_BYTES", 1200)
    text = render(report(), "markdown", Style())
    assert len(text.encode()) <= 1200
    assert "Cut off here" in text


def test_junit_counts_what_passed_and_never_passes_the_unknown() -> None:
    suite = ET.fromstring(render(report(), "junit", Style()))[0]
    by_name = {case.get("name", "").split("(")[0]: case for case in suite.findall("testcase")}
    assert len(by_name["aten::mm"]) == 0
    assert by_name["torchvision::nms"][0].tag == "error"
    assert by_name["aten::_linalg_eigh"][0].tag == "failure"
    assert by_name["aten::_slow_conv2d_forward"][0].tag == "failure"
    assert by_name["aten::mul.Tensor"][0].tag == "skipped"  # float64, reported where it is made


TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\r\n\0%:,|`<>&\"'[](){}\u202e\u2028\ud800\uffff\\"),
    ),
    max_size=12,
)


@st.composite
def hostile(draw: st.DrawFn) -> Report:
    """A sample in which every free string is hostile."""
    sample = report(*BOTH)
    place = Location(file=draw(TEXT), line=draw(st.integers(0, 9)), code=draw(TEXT))
    marked = finding(
        op=draw(TEXT),
        message=draw(TEXT),
        remedy=draw(TEXT),
        location=draw(st.sampled_from([None, place])),
        target=draw(TEXT),
        rule=draw(st.sampled_from(["OPS101", "OPS902", ""])),
        fingerprint=draw(TEXT),
        suppressed=draw(st.one_of(st.none(), TEXT)),
        links=(draw(TEXT),),
    )
    row = msgspec.structs.replace(sample.models[0].ops[0], op=draw(TEXT), locations=(place,))
    model = msgspec.structs.replace(
        sample.models[0],
        name=draw(TEXT),
        source=draw(TEXT),
        mode=draw(TEXT),
        findings=(*sample.models[0].findings, marked),
        ops=(row, *sample.models[0].ops[1:]),
    )
    return msgspec.structs.replace(
        sample, models=(model,), source=SourceScan(files=1, findings=(marked,))
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hostile())
def test_hostile_strings_neither_break_nor_reach_a_terminal(sample: Report) -> None:
    for name in (each for each in FORMATS if each != "html"):
        text = render(sample, name, Style())
        assert not HOSTILE.search(text), name
        text.encode()
        check(name, text)
