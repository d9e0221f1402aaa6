"""A device of the target's release against what the database says of it."""

from __future__ import annotations

import msgspec
import pytest

from scanner.judge.gate import Gate, exit_code
from scanner.judge.measured import call_of, with_measurements
from scanner.judge.rows import coverage, merge_rows
from scanner.probe.plan import config_key
from scanner.records import Capture, Evidence, Finding, Measurement, ModelReport, Status, Verdict
from tests.samples import TORCH_29, call, graph, spec

HERE = TORCH_29.id
DEVICE = "mps (Apple M3, torch 2.9.1, macOS 15.5)"


def stated(status: Status, evidence: Evidence | None = "database") -> Verdict:
    return Verdict(target=HERE, status=status, evidence=evidence, reason="as registered")


def report(verdict: Verdict, status: Status, device: str, target: str | None) -> ModelReport:
    """`exp` of two shapes, and of another dtype, with one verdict and one measurement."""
    ops = (
        call("aten::exp"),
        call("aten::exp", spec(shape=(7,))),
        call("aten::exp", spec(dtype="float16")),
    )
    rows = merge_rows([(TORCH_29, graph(*ops), [verdict] * 3)])
    model = ModelReport(
        name="Net",
        source="net.py",
        entry="Net",
        mode="train",
        capture=Capture(method="meta", complete=True),
        ops=rows,
        findings=(),
        coverage=coverage(rows),
    )
    result = Measurement(device=DEVICE, status=status, detail={"reason": "because"})
    known = {config_key(call_of(row)): result for row in rows}
    return with_measurements(model, device, lambda one: known.get(config_key(one)), target)


def found(
    verdict: Verdict, status: Status, device: str = "mps", target: str | None = HERE
) -> list[Finding]:
    findings = report(verdict, status, device, target).findings
    return [finding for finding in findings if finding.rule == "OPS905"]


RUNS: tuple[Status, ...] = ("native", "composite", "wrong", "nan", "slow")


@pytest.mark.parametrize(
    ("database", "measured"),
    [
        *(("native", status) for status in ("unsupported", "fallback")),
        *(("composite", status) for status in ("unsupported", "fallback")),
        *(("unsupported", status) for status in (*RUNS, "fallback")),
        *(("fallback", status) for status in (*RUNS, "unsupported")),
    ],
)
def test_another_outcome_than_the_database_has_is_said(database: Status, measured: Status) -> None:
    first, second = found(stated(database), measured)  # float32 in two shapes, and float16
    assert (first.op, first.target, first.severity) == ("aten::exp", HERE, "note")
    assert first.fingerprint != second.fingerprint
    assert first.calls == 2 * second.calls


@pytest.mark.parametrize(
    ("database", "measured"),
    [
        *((stated_, status) for stated_ in ("native", "composite") for status in RUNS),
        ("unsupported", "unsupported"),
        ("fallback", "fallback"),
        # What crashes, was not run or could not be judged says nothing about support.
        *(("native", status) for status in ("crash", "unknown", "skipped")),
        *(("unsupported", status) for status in ("crash", "unknown", "skipped")),
        *((status, "native") for status in ("unknown", "skipped")),
    ],
)
def test_what_agrees_or_says_nothing_is_no_finding(database: Status, measured: Status) -> None:
    assert found(stated(database), measured) == []


def test_both_sides_and_their_versions_are_told() -> None:
    finding = found(stated("native"), "unsupported")[0]
    assert finding.message == (
        f"aten::exp raises on {DEVICE}: because; the database says of {HERE} that it runs on the "
        "device (native: as registered)"
    )
    assert "report" in finding.remedy


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cpu", "drill:raise=aten::exp"])
def test_other_devices_are_not_compared(device: str) -> None:
    assert found(stated("native"), "unsupported", device) == []


def test_a_device_that_is_no_target_is_not_compared() -> None:
    assert found(stated("native"), "unsupported", "mps", None) == []
    assert found(stated("native"), "unsupported", "mps", "torch==1.13.1") == []


def test_the_simulator_of_the_release_is_compared() -> None:
    assert found(stated("native"), "fallback", "metal-sim")


@pytest.mark.parametrize("evidence", ["inferred", "upstream", "issue", "simulated"])
def test_only_the_extracted_database_can_be_contradicted(evidence: Evidence) -> None:
    assert found(stated("native", evidence), "unsupported") == []


def test_the_note_blocks_nothing_and_the_row_says_what_was_measured() -> None:
    whole = report(stated("unsupported"), "native", "mps", HERE)
    assert exit_code([whole], Gate(fail_on="warning")) == 0
    assert {row.verdicts[0].evidence for row in whole.ops} == {"measured"}


def test_the_fingerprint_holds_no_version() -> None:
    other = msgspec.structs.replace(stated("native"), reason="otherwise")
    assert found(other, "unsupported")[0].fingerprint == (
        found(stated("native"), "unsupported")[0].fingerprint
    )
