"""Adds what a device did, or the simulator of a target, to the report of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from scanner.judge.contradictions import contradictions
from scanner.judge.findings import fingerprint
from scanner.judge.rows import coverage
from scanner.judge.rules.interface import Advice, Rule
from scanner.judge.rules.measured import RULES, VARIANT_RULES, MeasuredCase, VariantCase
from scanner.judge.step_time import device_seconds, seconds_by_status, step_time, with_shares
from scanner.records import (
    Evidence,
    Finding,
    Measurement,
    ModelReport,
    OpCall,
    OpReport,
    Target,
    TensorSpec,
    Variant,
    Verdict,
)

__all__ = ["call_of", "with_measurements", "with_simulation"]

Lookup = Callable[[OpCall], "Measurement | None"]
_RUNS = frozenset({"native", "composite", "slow"})
VariantLookup = Callable[[OpCall], tuple[Variant, ...]]


def call_of(row: OpReport) -> OpCall:
    """The configuration of a row, as it was captured."""
    return OpCall(
        op=row.op,
        phase=row.phase,
        inputs=msgspec.convert(row.config.get("inputs", ()), tuple[TensorSpec, ...]),
        outputs=msgspec.convert(row.config.get("outputs", ()), tuple[TensorSpec, ...]),
        attributes=row.config.get("attributes", {}),
        values=msgspec.convert(row.config.get("values", {}), dict[str, tuple[int, ...]]),
        inner=msgspec.convert(row.config.get("inner", {}), dict[str, tuple[str, ...]]),
        calls=row.calls,
        locations=row.locations,
        via=row.via,
    )


def with_measurements(
    model: ModelReport,
    device: str,
    measured: Lookup,
    target: str | None,
    *,
    step_of: str = "",
    variants: VariantLookup = lambda _: (),
) -> ModelReport:
    """The model with a measurement on every row that was run, and findings about them.

    `target` is the id of the target that the device is; what was measured then replaces what the
    database said about it. `step_of` is the id of the target whose step the times are added up of,
    `target` if empty. The device's findings begin with what takes longest.
    """
    step_of, of = step_of or target or "", target or f"device={device}"
    rows = tuple(
        _measured(row, measured(call), target, variants(call))
        for row in model.ops
        for call in (call_of(row),)
    )
    news = sorted(_news(model.ops, rows, target), key=device_seconds, reverse=True)
    rows = with_shares(rows, step_of)
    longest_first = sorted(rows, key=device_seconds, reverse=True)
    by_time = seconds_by_status(rows, step_of)
    found = ((row, row.measurement) for row in news if row.measurement is not None)
    kept = (one for one in model.findings if not _refuted(one, rows, target, "measured"))
    return msgspec.structs.replace(
        model,
        ops=rows,
        findings=(
            *kept,
            *_findings(found, device, of),
            *_variant_findings(longest_first, device, of),
            *contradictions(model.ops, device, lambda row: measured(call_of(row)), target),
        ),
        coverage=msgspec.structs.replace(coverage(rows), by_time=by_time),
        time=step_time(rows, step_of),
    )


def with_simulation(model: ModelReport, target: Target, simulated: Lookup) -> ModelReport:
    """The model with what the target's release did in the simulator, and findings about it.

    Where that is known it replaces what the database said about the target, with evidence
    *simulated*; findings that it refutes are dropped, and none is repeated.
    """
    rows = tuple(_simulated(row, target.id, simulated) for row in model.ops)
    news = (
        (row, row.simulations[target.id])
        for row in _news(model.ops, rows, target.id)
        if target.id in row.simulations
    )
    kept = (one for one in model.findings if not _refuted(one, rows, target.id, "simulated"))
    found = _findings(news, f"simulated torch {target.version}", target.id)
    against = contradictions(model.ops, "metal-sim", lambda row: simulated(call_of(row)), target.id)
    return msgspec.structs.replace(
        model, ops=rows, findings=(*kept, *found, *against), coverage=coverage(rows)
    )


def _measured(
    row: OpReport,
    measurement: Measurement | None,
    target: str | None,
    variants: tuple[Variant, ...],
) -> OpReport:
    if measurement is None:
        return row
    verdicts = _replaced(row, measurement, target, "measured")
    return msgspec.structs.replace(
        row, measurement=measurement, verdicts=verdicts, variants=variants
    )


def _simulated(row: OpReport, target: str, simulated: Lookup) -> OpReport:
    """A row that the target does not dispatch was not simulated for it."""
    if all(verdict.target != target for verdict in row.verdicts):
        return row
    measurement = simulated(call_of(row))
    if measurement is None:
        return row
    return msgspec.structs.replace(
        row,
        simulations={**row.simulations, target: measurement},
        verdicts=_replaced(row, measurement, target, "simulated"),
    )


def _replaced(
    row: OpReport, measurement: Measurement, target: str | None, evidence: Evidence
) -> tuple[Verdict, ...]:
    """An op that was not judged on the device keeps the verdict it had."""
    if measurement.status in {"unknown", "skipped"}:
        return row.verdicts
    reason = _reason(measurement) or _agreement(measurement, evidence)
    return tuple(
        Verdict(
            target=verdict.target,
            status=measurement.status,
            evidence=evidence,
            reason=reason,
            fixed_in=verdict.fixed_in if verdict.status == measurement.status else None,
            links=verdict.links,
        )
        if verdict.target == target
        else verdict
        for verdict in row.verdicts
    )


def _agreement(measurement: Measurement, evidence: Evidence) -> str:
    if evidence == "measured":
        return f"agrees with the CPU on {measurement.device}"
    ends = ", approximate functions at the ends of their allowed error too"
    more = ends if "ulp" in measurement.detail else ""
    if measurement.detail.get("evidence") == "simulated-graph":
        return f"agrees with the CPU, MPSGraph interpreted: Apple's own rounding is not known{more}"
    return f"agrees with the CPU, the release's own code simulated{more}"


def _news(
    before: Sequence[OpReport], rows: Sequence[OpReport], target: str | None
) -> tuple[OpReport, ...]:
    """Rows about which the database had not already said what was found."""
    pairs = zip(before, rows, strict=True)
    return tuple(row for old, row in pairs if not _said_before(old, row, target))


def _said_before(before: OpReport, row: OpReport, target: str | None) -> bool:
    pairs = zip(before.verdicts, row.verdicts, strict=True)
    return any(
        new.target == target and new.evidence != old.evidence and old.status == new.status
        for old, new in pairs
    )


def _refuted(
    finding: Finding, rows: tuple[OpReport, ...], target: str | None, evidence: Evidence
) -> bool:
    """Whether every configuration that a finding can be about was run, and runs."""
    verdicts = [
        verdict
        for row in rows
        if finding.target == target and row.op == finding.op
        for verdict in row.verdicts
        if verdict.target == target
    ]
    return bool(verdicts) and all(
        verdict.evidence == evidence and verdict.status in _RUNS for verdict in verdicts
    )


def _findings(
    found: Iterable[tuple[OpReport, Measurement]], device: str, target: str
) -> Iterator[Finding]:
    for row, measurement in found:
        case = MeasuredCase(
            op=row.op,
            device=device,
            status=measurement.status,
            reason=_reason(measurement),
            variable_serves=_variable_serves(measurement),
        )
        for rule in RULES:
            if (advice := rule.check(case)) is not None:
                yield _finding(row, rule, advice, target)


def _variant_findings(rows: Sequence[OpReport], device: str, target: str) -> Iterator[Finding]:
    for row in rows:
        for variant in row.variants:
            case = VariantCase(
                op=row.op,
                device=device,
                dtype=variant.dtype,
                status=variant.measurement.status,
                base_status=row.measurement.status if row.measurement else "unknown",
                reason=_reason(variant.measurement),
                overflows=variant.overflows,
            )
            for rule in VARIANT_RULES:
                if (advice := rule.check(case)) is not None:
                    yield _finding(row, rule, advice, target, variant)


def _finding(
    row: OpReport, rule: Rule[Any], advice: Advice, target: str, variant: Variant | None = None
) -> Finding:
    """About a variant, or about the configuration itself."""
    place = row.locations[0] if row.locations else None
    dtypes = [variant.dtype] if variant else [spec["dtype"] for spec in row.config["inputs"]]
    # One rule is about variants that fail in any way: another way is another finding.
    status = variant.measurement.status if variant else "native"
    kind = [] if status in _RUNS else [status]
    module = place.module if place else ""
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        target=target,
        op=row.op,
        message=advice.message,
        remedy=advice.remedy,
        location=place,
        fingerprint=fingerprint((rule.id, row.op, ",".join(dtypes), module, *kind)),
        calls=row.calls,
        dtypes=tuple(dict.fromkeys(dtypes)),
    )


def _variable_serves(measurement: Measurement) -> bool:
    with_it = measurement.detail.get("fallback", {}).get("on")
    return with_it is not None and with_it["status"] == "fallback"


def _reason(measurement: Measurement) -> str:
    return str(measurement.detail.get("reason", ""))
