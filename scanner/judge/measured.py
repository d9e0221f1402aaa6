"""Adds what a device did to the report of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from scanner.judge.contradictions import contradictions
from scanner.judge.findings import fingerprint
from scanner.judge.rows import coverage
from scanner.judge.rules.measured import RULES, MeasuredCase
from scanner.judge.step_time import device_seconds, seconds_by_status, step_time, with_shares
from scanner.records import (
    Finding,
    Measurement,
    ModelReport,
    OpCall,
    OpReport,
    TensorSpec,
    Verdict,
)

__all__ = ["call_of", "with_measurements"]

Lookup = Callable[[OpCall], "Measurement | None"]


def call_of(row: OpReport) -> OpCall:
    """The configuration of a row, as it was captured."""
    return OpCall(
        op=row.op,
        phase=row.phase,
        inputs=msgspec.convert(row.config["inputs"], tuple[TensorSpec, ...]),
        outputs=msgspec.convert(row.config.get("outputs", ()), tuple[TensorSpec, ...]),
        attributes=row.config["attributes"],
        via=row.via,
    )


def with_measurements(
    model: ModelReport, device: str, measured: Lookup, target: str | None, step_of: str = ""
) -> ModelReport:
    """The model with a measurement on every row that was run, and findings about them.

    `target` is the id of the target that the device is; what was measured then replaces what the
    database said about it. `step_of` is the id of the target whose step the times are added up of,
    `target` if empty. The device's findings begin with what takes longest.
    """
    step_of = step_of or target or ""
    rows = tuple(_row(row, measured(call_of(row)), target) for row in model.ops)
    rows = with_shares(rows, step_of)
    longest_first = sorted(rows, key=device_seconds, reverse=True)
    by_time = seconds_by_status(rows, step_of)
    return msgspec.structs.replace(
        model,
        ops=rows,
        findings=(
            *model.findings,
            *_findings(longest_first, device, target),
            *contradictions(model.ops, device, lambda row: measured(call_of(row)), target),
        ),
        coverage=msgspec.structs.replace(coverage(rows), by_time=by_time),
        time=step_time(rows, step_of),
    )


def _row(row: OpReport, measurement: Measurement | None, target: str | None) -> OpReport:
    if measurement is None:
        return row
    verdicts = tuple(_verdict(verdict, measurement, target) for verdict in row.verdicts)
    return msgspec.structs.replace(row, measurement=measurement, verdicts=verdicts)


def _verdict(verdict: Verdict, measurement: Measurement, target: str | None) -> Verdict:
    """An op that was not judged on the device keeps the verdict it had."""
    if verdict.target != target or measurement.status in {"unknown", "skipped"}:
        return verdict
    return msgspec.structs.replace(
        verdict,
        status=measurement.status,
        evidence="measured",
        reason=_reason(measurement) or f"agrees with the CPU on {measurement.device}",
    )


def _findings(rows: Sequence[OpReport], device: str, target: str | None) -> Iterator[Finding]:
    for row in rows:
        if row.measurement is None:
            continue
        case = MeasuredCase(
            op=row.op,
            device=device,
            status=row.measurement.status,
            reason=_reason(row.measurement),
            variable_serves=_variable_serves(row.measurement),
        )
        for rule in RULES:
            advice = rule.check(case)
            if advice is not None:
                place = row.locations[0] if row.locations else None
                module = place.module if place else ""
                signature = ",".join(spec["dtype"] for spec in row.config["inputs"])
                yield Finding(
                    rule=rule.id,
                    severity=rule.severity,
                    target=target or f"device={device}",
                    op=row.op,
                    message=advice.message,
                    remedy=advice.remedy,
                    location=place,
                    fingerprint=fingerprint((rule.id, row.op, signature, module)),
                    calls=row.calls,
                )


def _variable_serves(measurement: Measurement) -> bool:
    with_it = measurement.detail.get("fallback", {}).get("on")
    return with_it is not None and with_it["status"] == "fallback"


def _reason(measurement: Measurement) -> str:
    return str(measurement.detail.get("reason", ""))
