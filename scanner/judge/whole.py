"""Adds what whole steps on a device have shown to the report of a model."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from scanner.judge.findings import fingerprint, problem_findings
from scanner.judge.rules import Problem
from scanner.judge.rules.whole import RULES, WholeCase
from scanner.probe.whole import Whole
from scanner.records import Accumulated, Divergence, Finding, ModelReport

__all__ = ["with_whole"]


def with_whole(model: ModelReport, whole: Whole, target: str | None) -> ModelReport:
    """The model with its steps and batch sizes, and findings about them.

    `target` is the id of the target that the device is.
    """
    found = tuple(_findings(whole.accumulated, target)) if whole.accumulated else ()
    if whole.traceback:
        failed = Problem(name=model.name, message="opscan failed on its steps", internal=True)
        found += problem_findings(failed)
    return msgspec.structs.replace(
        model,
        findings=(*model.findings, *found),
        accumulated=whole.accumulated,
        batches=whole.batches,
    )


def _findings(run: Accumulated, target: str | None) -> Iterator[Finding]:
    for found in _notable(run):
        for rule in RULES:
            advice = rule.check(WholeCase(device=run.device, found=found))
            if advice is not None:
                module = found.location.module if found.location else ""
                yield Finding(
                    rule=rule.id,
                    severity=rule.severity,
                    target=target or f"device={run.device}",
                    op=found.op,
                    message=advice.message,
                    remedy=advice.remedy,
                    location=found.location,
                    fingerprint=fingerprint((rule.id, found.op, found.phase, module, found.kind)),
                    calls=1,
                )


def _notable(run: Accumulated) -> Iterator[Divergence]:
    """Each op once: one that makes NaN is past its tolerance for that reason."""
    spoilt = run.first_nan
    for found in (run.ended, spoilt, run.first, run.drift):
        if found is None:
            continue
        same = spoilt is not None and (found.op, found.step) == (spoilt.op, spoilt.step)
        if found is spoilt or not same:
            yield found
