"""How a report's verdicts are known, in words: devices, evidence, and what nobody could tell."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.records import ModelReport, Report
from scanner.report.blocks import measured_apart
from scanner.report.words import join

__all__ = ["evidence_text", "unanswered"]

_MEANINGS = {
    "measured": "measured: run on the device, against a reference on the CPU",
    "simulated": "simulated: the release's own code run in an emulator, against a reference on "
    "the CPU, not measured",
    "database": "database: what the release's published macOS wheel registers",
    "inferred": "inferred: from documented limits of MPS, or the installed torch's YAML",
}
_LISTED = 4


def evidence_text(report: Report) -> str:
    """`Judged without a device. Evidence: database: …`."""
    used = {
        verdict.evidence for model in report.models for row in model.ops for verdict in row.verdicts
    }
    if any(measured_apart(row) for model in report.models for row in model.ops):
        used.add("measured")
    known = "; ".join(text for key, text in _MEANINGS.items() if key in used)
    return f"{_devices(report)} Evidence: {known or 'none'}."


def unanswered(model: ModelReport) -> Iterator[str]:
    """Why a device, or the simulator of a target, could not tell about some ops."""
    ops: dict[str, dict[str, None]] = {}
    for row in model.ops:
        for where, found in {"on the device": row.measurement, **row.simulations}.items():
            if found is not None and found.status == "unknown":
                place = f"simulated {where}" if where in row.simulations else where
                why = f"not known {place}: {found.detail.get('reason', '')}"
                ops.setdefault(why, {})[row.op] = None
    for why, names in ops.items():
        shown = list(names)[:_LISTED]
        more = [f"{len(names) - len(shown)} more"] if len(names) > len(shown) else []
        yield f"{join([*shown, *more])}: {why}"


def _devices(report: Report) -> str:
    rows = [row for model in report.models for row in model.ops]
    measured = {row.measurement.device for row in rows if row.measurement is not None}
    imitated = {found.device for row in rows for found in row.simulations.values()}
    ran = [f"Run on {', '.join(sorted(measured))}."] if measured else []
    ran += [f"Simulated: {', '.join(sorted(imitated))}."] if imitated else []
    return " ".join(ran) or "Judged without a device."
