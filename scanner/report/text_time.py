"""How measured times are put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from scanner.records import Variant
from scanner.report.blocks import STATUS_STYLES, Block
from scanner.report.words import clean, count
from scanner.units import seconds_text

__all__ = ["share_line", "step_text", "variant_lines"]


def share_line(block: Block) -> Iterator[Text]:
    """How much of the step a block takes; nothing when it was not timed."""
    if not block.times:
        return
    share = sum(float(each["device"]) for each in block.times)
    cpu_s = sum(float(each["cpu_s"]) for each in block.times)
    line = f"{share:.1%} of the step on the device: {seconds_text(block.device_s)}"
    warnings = dict.fromkeys(each["warning"] for each in block.times if each["warning"])
    more = "".join(f"; {warning}" for warning in warnings)
    yield Text(f"{line}, {seconds_text(cpu_s)} on the CPU{more}", "cyan")


def variant_lines(block: Block) -> Iterator[Text]:
    """What became of a block in each half-precision dtype, as far as its rows agree on a status."""
    groups: dict[str, list[Variant]] = {}
    for variant in block.variants:
        groups.setdefault(variant.dtype, []).append(variant)
    for dtype, variants in groups.items():
        status = variants[0].measurement.status
        line = Text(f"as {dtype}: ")
        line.append(status, STATUS_STYLES[status])
        line.append("".join(_variant_facts(variants)))
        yield line


def _variant_facts(variants: list[Variant]) -> Iterator[str]:
    reason = variants[0].measurement.detail.get("reason")
    if reason:
        yield f", {clean(str(reason))}"
    if overflows := sum(variant.overflows for variant in variants):
        yield f", {count(overflows, 'element')} infinite or NaN in {variants[0].dtype} alone"
    errors = [variant.error for variant in variants if variant.error is not None]
    if errors:
        yield f", error {max(errors):.1e}"
        base = [variant.base_error for variant in variants if variant.base_error is not None]
        yield f" (float32 {max(base):.1e})" if base else ""
    speedups = [variant.speedup for variant in variants if variant.speedup is not None]
    if speedups:
        least, most = f"{min(speedups):.2g}", f"{max(speedups):.2g}"
        span = least if least == most else f"{least} to {most}"
        yield f", {span} times as fast as float32"


def step_text(time: Mapping[str, Any]) -> str:
    """`ModelReport.time` in one sentence."""
    device, cpu = (seconds_text(time[f"{side}_s"]) for side in ("device", "cpu"))
    text = f"the whole step would take {device} on the device, {cpu} on the CPU ({time['basis']})"
    text += f"; first calls take {seconds_text(time['first_calls_s'])} on the device"
    for dtype, step in time.get("autocast", {}).items():
        text += f"; {seconds_text(step['device_s'])} on the device with autocast to {dtype}"
    missing = time["not_timed"]
    if not missing["configurations"]:
        return text
    left_out = count(missing["configurations"], "configuration")
    return f"{text}; without {left_out} ({count(missing['calls'], 'call')}) that could not be timed"
