"""The step out of its parts, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.judge.measured import with_measurements
from scanner.judge.rows import coverage, merge_rows
from scanner.records import Capture, Measurement, ModelReport, OpCall, Status, Variant, Verdict
from tests.samples import TORCH_29, TORCH_214, call, graph, spec


def verdict(target: str) -> Verdict:
    return Verdict(target=target, status="native", evidence="database", reason="a kernel")


def measurement(
    device_s: float | None, cpu_s: float = 0.0, status: Status = "native"
) -> Measurement:
    detail: dict[str, Any] = {"reason": "because"}
    if device_s is not None:
        device = {"median_s": device_s, "first_s": 10 * device_s}
        detail["timing"] = {"device": device, "cpu": {"median_s": cpu_s}, "warning": ""}
    return Measurement(device="cuda (H200)", status=status, detail=detail)


KNOWN = {
    "aten::exp": measurement(2.0, 1.0, "slow"),
    "aten::sin": measurement(4.0, 5.0, "wrong"),
    "aten::mm": measurement(0.5, 3.0),
    "aten::cos": measurement(None, status="crash"),
    "aten::linear": measurement(100.0, 100.0),
}


def model() -> ModelReport:
    here = (
        call("aten::exp", calls=3),
        call("aten::sin", calls=4),
        call("aten::mm", spec(), spec(name="mat2"), calls=4),
        call("aten::cos", calls=5),
        call("aten::relu"),
    )
    other = (call("aten::linear"),)
    rows = merge_rows(
        [
            (TORCH_29, graph(*here), [verdict(TORCH_29.id)] * 5),
            (TORCH_214, graph(*other), [verdict(TORCH_214.id)]),
        ]
    )
    return ModelReport(
        name="Net",
        source="net.py",
        entry="Net",
        mode="train",
        capture=Capture(method="meta", complete=True),
        ops=rows,
        findings=(),
        coverage=coverage(rows),
    )


def measured(step_of: str = TORCH_29.id) -> ModelReport:
    def lookup(one: OpCall) -> Measurement | None:
        return KNOWN.get(one.op)

    return with_measurements(model(), "cuda", lookup, None, step_of=step_of)


def test_the_step_is_calls_times_median() -> None:
    # 3·2 + 4·4 + 4·0.5 on the device, 3·1 + 4·5 + 4·3 on the CPU; relu was not to be run.
    assert measured().time == {
        "device": "cuda (H200)",
        "device_s": pytest.approx(24.0),
        "cpu_s": pytest.approx(35.0),
        "first_calls_s": pytest.approx(65.0),
        "basis": "sum of isolated ops; overlap not counted",
        "timed": {"configurations": 3, "calls": 11},
        "not_timed": {"configurations": 1, "calls": 5},
    }


def test_each_row_has_its_share_of_what_was_timed() -> None:
    shares = {
        row.op: {k: v for k, v in row.measurement.detail["share"].items() if k != "warning"}
        for row in measured().ops
        if row.measurement is not None and "share" in row.measurement.detail
    }
    assert shares == {
        "aten::exp": pytest.approx({"device": 6 / 24, "cpu": 3 / 35, "device_s": 6, "cpu_s": 3}),
        "aten::sin": pytest.approx(
            {"device": 16 / 24, "cpu": 20 / 35, "device_s": 16, "cpu_s": 20}
        ),
        "aten::mm": pytest.approx({"device": 2 / 24, "cpu": 12 / 35, "device_s": 2, "cpu_s": 12}),
    }


def test_findings_begin_with_what_takes_longest() -> None:
    assert [finding.op for finding in measured().findings] == [
        "aten::sin",
        "aten::exp",
        "aten::cos",
    ]


def test_another_target_s_lowering_is_another_step() -> None:
    time = measured(TORCH_214.id).time
    assert time is not None
    assert (time["device_s"], time["timed"]["configurations"]) == (100.0, 1)


def test_a_step_with_variants_in_place_of_what_they_are_variants_of() -> None:
    def half(one: OpCall) -> tuple[Variant, ...]:
        if one.op not in {"aten::sin", "aten::mm"}:
            return ()
        speedup = 4.0 if one.op == "aten::sin" else None
        found = Variant(dtype="float16", measurement=measurement(1.0), speedup=speedup)
        return (found,)

    found = with_measurements(
        model(), "cuda", lambda one: KNOWN.get(one.op), None, step_of=TORCH_29.id, variants=half
    )
    # The 16 s of sin become 4.
    assert found.time is not None
    assert found.time["autocast"] == {
        "float16": {"device_s": pytest.approx(12.0), "configurations": 1}
    }


def test_seconds_by_status() -> None:
    assert measured().coverage.by_time == {"native": pytest.approx(24.0)}


def test_without_timing_nothing_is_said() -> None:
    found = with_measurements(
        model(), "cuda", lambda _: measurement(None), None, step_of=TORCH_29.id
    )
    assert found.time is None
    assert found.coverage.by_time is None
