"""OPS905: the database and a device of that very release say different things."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.judge.rules.interface import Advice, define
from scanner.records import Measurement, Status, Verdict

__all__ = ["RULES", "Contradiction"]

_SUPPORT: dict[Status, str] = {
    **dict.fromkeys(("native", "composite", "wrong", "nan", "slow"), "runs on the device"),
    "fallback": "runs on the CPU",
    "unsupported": "raises",
}
"""What a status says about support. A crash, *unknown* and *skipped* say nothing."""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """What was looked up and what was measured about one configuration on one target."""

    op: str
    stated: Verdict
    """Before the measurement took its place."""
    measured: Measurement


def _supports(status: Status) -> str | None:
    """Whether an op of this status runs on the device, on the CPU, or raises; None: not known."""
    return _SUPPORT.get(status)


@define("OPS905", "database-contradicted", "note", since="0.1.0")
def database_contradicted(case: Contradiction) -> Advice | None:
    """The device does something else than the database says of its release.

    The database is read from the binaries of each release: which functions are registered for MPS,
    and whether their code can only raise. The op was also run, on this release, and it did not do
    what follows from that: it raised or fell back to the CPU although a kernel is registered, or it
    ran although none is. The finding gives both sides and their versions. The row of the report
    says what was measured, since that is the stronger evidence.

    Nothing is compared when the device is not the target: another release, `cuda`, `cpu`, a drill.

    ## What to do

    Believe the measurement. Please report it with the text of the finding and the row that
    `-f json` prints: either the database has a mistake, or the op refuses just this configuration,
    or torch was built otherwise than the published wheel.
    """
    stated, found = _supports(case.stated.status), _supports(case.measured.status)
    if case.stated.evidence != "database" or None in (stated, found) or stated == found:
        return None
    reason = case.measured.detail.get("reason", "")
    said = f": {reason}" if reason else ""
    return Advice(
        message=(
            f"{case.op} {found} on {case.measured.device}{said}; the database says of "
            f"{case.stated.target} that it {stated} ({case.stated.status}: {case.stated.reason})"
        ),
        remedy=(
            "The row says what running it showed. Please report the contradiction to opscan with "
            "this text and the op's row of the -f json report."
        ),
    )


RULES = (database_contradicted,)
