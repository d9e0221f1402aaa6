"""Totals over all models, and the exit code that they mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from scanner.records import Finding, ModelReport, SourceScan, Summary, Suppression

__all__ = ["FailOn", "Gate", "exit_code", "summarize"]

FailOn = Literal["error", "warning", "never"]

_BLOCKING: dict[str, frozenset[str]] = {
    "error": frozenset({"error"}),
    "warning": frozenset({"error", "warning"}),
    "never": frozenset(),
}
_FAILED_RULES = frozenset({"OPS903", "OPS904"})
"""Opscan could not do its job on something it was asked to scan."""
_UNREAD = "OPS906"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What the caller wants to be stopped by."""

    fail_on: FailOn = "error"
    allow_incomplete: bool = False


def summarize(
    models: Sequence[ModelReport],
    source: SourceScan | None = None,
    suppression: Suppression | None = None,
) -> Summary:
    """Count findings that are not suppressed, and whether everything was judged."""
    active = list(_active(models, source, suppression))
    severities = Counter(finding.severity for finding in active)
    judged = (bool(models) or source is not None) and all(each.rule != _UNREAD for each in active)
    return Summary(
        errors=severities["error"],
        warnings=severities["warning"],
        notes=severities["note"],
        complete=judged and all(_complete(model) for model in models),
    )


def exit_code(
    models: Sequence[ModelReport],
    gate: Gate,
    source: SourceScan | None = None,
    suppression: Suppression | None = None,
) -> int:
    """2 opscan failed on something, else 1 blocking findings, else 3 incomplete, else 0."""
    findings = list(_active(models, source, suppression))
    if any(finding.rule in _FAILED_RULES for finding in findings):
        return 2
    if any(finding.severity in _BLOCKING[gate.fail_on] for finding in findings):
        return 1
    if summarize(models, source).complete or gate.allow_incomplete:
        return 0
    return 3


def _active(
    models: Iterable[ModelReport], source: SourceScan | None, suppression: Suppression | None
) -> Iterator[Finding]:
    of_source = source.findings if source else ()
    stale = suppression.findings if suppression else ()
    found = (*(finding for model in models for finding in model.findings), *of_source, *stale)
    return (finding for finding in found if not finding.suppressed)


def _complete(model: ModelReport) -> bool:
    captured = model.capture is not None and model.capture.complete
    judged = model.coverage.by_config
    walked = model.accumulated is None or not model.accumulated.incomplete
    known = bool(judged) and "unknown" not in judged
    return captured and known and walked and not _unmeasured(model)


def _unmeasured(model: ModelReport) -> bool:
    """Whether a device, real or simulated, was asked about a configuration and gave no answer."""
    measured = (row.measurement for row in model.ops if row.measurement is not None)
    simulated = (each for row in model.ops for each in row.simulations.values())
    return any(each.status == "unknown" for each in (*measured, *simulated))
