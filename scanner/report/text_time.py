"""How measured times are put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from scanner.report.blocks import Block
from scanner.report.words import count
from scanner.units import seconds_text

__all__ = ["share_line", "step_text"]


def share_line(block: Block) -> Iterator[Text]:
    """How much of the step a block takes; nothing when it was not timed."""
    if not block.times:
        return
    share = sum(float(each["device"]) for each in block.times)
    cpu_s = sum(float(each["cpu_s"]) for each in block.times)
    line = f"{share:.1%} of the step on the device: {seconds_text(block.device_s)}"
    yield Text(f"{line}, {seconds_text(cpu_s)} on the CPU", "cyan")


def step_text(time: Mapping[str, Any]) -> str:
    """`ModelReport.time` in one sentence."""
    device, cpu = (seconds_text(time[f"{side}_s"]) for side in ("device", "cpu"))
    text = f"the whole step would take {device} on the device, {cpu} on the CPU ({time['basis']})"
    missing = time["not_timed"]
    if not missing["configurations"]:
        return text
    left_out = count(missing["configurations"], "configuration")
    return f"{text}; without {left_out} ({count(missing['calls'], 'call')}) that could not be timed"
