from __future__ import annotations

import pytest

from scanner.judge.gate import FailOn, Gate, exit_code, summarize
from scanner.records import Capture, Coverage, Finding, ModelReport, Severity

WHOLE = Capture(method="meta", complete=True)


def finding(rule: str, severity: Severity, suppressed: str | None = None) -> Finding:
    return Finding(
        rule=rule,
        severity=severity,
        target="",
        op="",
        message="",
        remedy="",
        location=None,
        suppressed=suppressed,
    )


def model(
    *findings: Finding, capture: Capture | None = WHOLE, statuses: tuple[str, ...] = ("native",)
) -> ModelReport:
    counts = dict.fromkeys(statuses, 1)
    return ModelReport(
        name="Net",
        source="model.py",
        entry="Net",
        mode="train",
        capture=capture,
        ops=(),
        findings=findings,
        coverage=Coverage(by_config=counts, by_call=counts),
    )


CLEAN = model()
WARNED = model(finding("OPS102", "warning"))
BROKEN = model(finding("OPS101", "error"))
UNKNOWN = model(finding("OPS105", "note"), statuses=("native", "unknown"))
PARTIAL = model(finding("OPS902", "note"), capture=Capture(method="meta", complete=False))
LOST = model(finding("OPS901", "note"), capture=None)
MISSING = model(finding("OPS903", "note"), capture=None)
CRASHED = model(finding("OPS904", "note"), capture=None)


@pytest.mark.parametrize(
    ("models", "fail_on", "code"),
    [
        ([CLEAN], "error", 0),
        ([WARNED], "error", 0),
        ([WARNED], "warning", 1),
        ([BROKEN], "error", 1),
        ([BROKEN], "warning", 1),
        ([BROKEN], "never", 0),
        ([UNKNOWN], "error", 3),
        ([PARTIAL], "error", 3),
        ([LOST], "error", 3),
        ([LOST], "never", 3),
        ([MISSING], "error", 2),
        ([CRASHED], "error", 2),
        # 2 > 1 > 3 > 0
        ([BROKEN, MISSING, LOST, CLEAN], "error", 2),
        ([BROKEN, LOST, CLEAN], "error", 1),
        ([CLEAN, LOST], "error", 3),
    ],
)
def test_exit_codes_and_their_precedence(
    models: list[ModelReport], fail_on: FailOn, code: int
) -> None:
    assert exit_code(models, Gate(fail_on=fail_on)) == code


@pytest.mark.parametrize("incomplete", [UNKNOWN, PARTIAL, LOST])
def test_incomplete_can_be_allowed(incomplete: ModelReport) -> None:
    assert exit_code([incomplete], Gate(allow_incomplete=True)) == 0


def test_allowing_incomplete_hides_neither_findings_nor_failures() -> None:
    assert exit_code([LOST, BROKEN], Gate(allow_incomplete=True)) == 1
    assert exit_code([LOST, MISSING], Gate(allow_incomplete=True)) == 2


def test_suppressed_findings_do_not_block() -> None:
    accepted = model(finding("OPS101", "error", suppressed="runs on Linux only"))
    assert exit_code([accepted], Gate()) == 0
    assert summarize([accepted]).errors == 0


def test_summary_counts_over_all_models() -> None:
    found = summarize([BROKEN, WARNED, UNKNOWN, BROKEN])
    assert (found.errors, found.warnings, found.notes, found.complete) == (2, 1, 1, False)
    assert summarize([CLEAN, BROKEN]).complete


def test_nothing_judged_is_not_a_pass() -> None:
    assert not summarize([]).complete
    assert exit_code([], Gate()) == 3
    empty = model(statuses=())
    assert not summarize([empty]).complete
