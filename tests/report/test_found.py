"""Findings of models and of source files, taken together."""

from __future__ import annotations

import msgspec

from scanner.judge.gate import Gate, exit_code, summarize
from scanner.records import Finding, Fix, Location, Report, SourceScan, Summary
from scanner.report import Style, render
from scanner.report.found import findings_of
from tests.report.sample_report import report


def source_finding(severity: str = "warning", suppressed: str | None = None) -> Finding:
    return Finding(
        rule="OPS601",
        severity=severity,  # type: ignore[arg-type]
        target="",
        op="",
        message=".cuda() exists on NVIDIA GPUs only",
        remedy="Use .to(device).",
        location=Location(file="train.py", line=3, column=5, end_line=3, end_column=12),
        suppressed=suppressed,
        fix=Fix(description="Replace .cuda() by .to(device)", safe=False),
    )


def scanned(*findings: Finding) -> SourceScan:
    return SourceScan(files=1, findings=findings)


def test_models_come_before_source_files() -> None:
    whole = msgspec.structs.replace(report(), source=scanned(source_finding()))
    found = list(findings_of(whole))
    assert [each.model is None for each in found] == [False] * (len(found) - 1) + [True]
    assert found[-1].file == "train.py"


def test_source_findings_count_and_block() -> None:
    source = scanned(source_finding(), source_finding("error", suppressed="one machine"))
    assert summarize((), source) == Summary(errors=0, warnings=1, notes=0, complete=True)
    assert exit_code((), Gate(fail_on="error"), source) == 0
    assert exit_code((), Gate(fail_on="warning"), source) == 1


def test_nothing_read_is_not_complete() -> None:
    assert not summarize(()).complete
    assert exit_code((), Gate()) == 3


def test_concise_shows_the_column() -> None:
    alone = Report(source=scanned(source_finding()), summary=summarize(()), exit_code=0)
    assert render(alone, "concise", Style()) == (
        "train.py:3:5: OPS601 warning .cuda() exists on NVIDIA GPUs only\n"
    )
