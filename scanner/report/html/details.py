"""What the table tells of a row beside its verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from scanner.records import Measurement, OpReport
from scanner.report.words import inputs_text, seconds_text

__all__ = ["attributes_text", "number", "row_details", "seconds_of"]

_LONGEST = 240


def attributes_text(config: Mapping[str, Any]) -> str:
    """`dim=1, keepdim=True → f32[8]`: the non-tensor arguments and the results."""
    attributes = ", ".join(
        f"{name}={value}" for name, value in sorted(config.get("attributes", {}).items())
    )
    if len(attributes) > _LONGEST:
        attributes = attributes[:_LONGEST] + "…"
    outputs = config.get("outputs", ())
    results = f"→ {inputs_text({'inputs': outputs})}" if outputs else ""
    return " ".join(part for part in (attributes, results) if part)


def number(data: Any, *path: str) -> float | None:
    """The finite number at a path of nested mappings; None where there is none."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    return float(data) if is_number and isfinite(data) else None


def seconds_of(row: OpReport) -> tuple[float | None, float | None]:
    """Seconds of all calls of a row, on the device and on the CPU, where they were timed."""
    detail = row.measurement.detail if row.measurement else {}
    return number(detail, "share", "device_s"), number(detail, "share", "cpu_s")


def row_details(row: OpReport) -> Iterator[str]:
    """A line for each thing that was run or estimated."""
    if row.measurement is not None:
        yield _outcome(f"measured on {row.measurement.device}", row.measurement)
        yield from _timing(row.measurement)
    for target, simulated in sorted(row.simulations.items()):
        yield _outcome(f"simulated for {target}", simulated)
    for variant in row.variants:
        told = _outcome(f"as {variant.dtype}", variant.measurement)
        if variant.error is not None:
            told += f", error {variant.error:.1e}"
        if variant.overflows:
            told += f", {variant.overflows} elements infinite or NaN in {variant.dtype} alone"
        if variant.speedup is not None:
            told += f", {variant.speedup:.2g} times as fast"
        yield told
    for name, value in sorted((row.estimate or {}).items()):
        yield f"estimated {name.replace('_', ' ')}: {value}"


def _outcome(who: str, found: Measurement) -> str:
    reason = found.detail.get("reason")
    return f"{who}: {found.status}" + (f", {reason}" if reason else "")


def _timing(found: Measurement) -> Iterator[str]:
    device, cpu = (number(found.detail, "timing", side, "median_s") for side in ("device", "cpu"))
    if device is not None and cpu is not None:
        yield f"a call takes {seconds_text(device)} on the device, {seconds_text(cpu)} on the CPU"
