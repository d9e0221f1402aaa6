"""Findings where a device of the target's own release contradicts the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from scanner.judge.findings import fingerprint
from scanner.judge.rules.contradiction import RULES, Contradiction
from scanner.records import Finding, Measurement, OpReport, Verdict

__all__ = ["contradictions"]

_COMPARED = frozenset({"mps", "metal-sim"})
"""Devices that the database speaks of."""


def contradictions(
    rows: Iterable[OpReport],
    device: str,
    measured: Callable[[OpReport], Measurement | None],
    target: str | None,
) -> tuple[Finding, ...]:
    """One finding for each op, dtype signature and kind of contradiction, with all their calls.

    `rows` as judged, before measurements replaced their verdicts; `target` is the id of the target
    that the device is, None when it is none: then nothing is compared.
    """
    if target is None or device.partition(":")[0] not in _COMPARED:
        return ()
    found: dict[str, Finding] = {}
    for row in rows:
        measurement = measured(row)
        stated = next((verdict for verdict in row.verdicts if verdict.target == target), None)
        if measurement is None or stated is None:
            continue
        for finding in _found(row, stated, measurement):
            first = found.setdefault(finding.fingerprint, finding)
            if first is not finding:
                calls = first.calls + finding.calls
                found[finding.fingerprint] = msgspec.structs.replace(first, calls=calls)
    return tuple(found.values())


def _found(row: OpReport, stated: Verdict, measurement: Measurement) -> Iterator[Finding]:
    case = Contradiction(op=row.op, stated=stated, measured=measurement)
    signature = ",".join(spec["dtype"] for spec in row.config["inputs"])
    for rule in RULES:
        if (advice := rule.check(case)) is not None:
            identity = (rule.id, row.op, signature, stated.status, measurement.status)
            yield Finding(
                rule=rule.id,
                severity=rule.severity,
                target=stated.target,
                op=row.op,
                message=advice.message,
                remedy=advice.remedy,
                location=row.locations[0] if row.locations else None,
                fingerprint=fingerprint(identity),
                calls=row.calls,
            )
