"""From what was found to one status and one sentence."""

from __future__ import annotations

import torch

from scanner.backends.interface import Inconclusive
from scanner.probe.judge import Judgement
from scanner.probe.outcome import Detection, OutputResult
from scanner.records import Status

__all__ = ["describe_output", "explain", "failure_of", "raised_status"]

_NON_FINITE = frozenset({"nan-appears", "nan-vanishes"})
_LOST = (
    "device-side assert",
    "illegal memory access",
    "unspecified launch failure",
    "command buffer",
    "misaligned address",
    "device was lost",
)
_MEMORY = ("out of memory", "not enough memory", "can't allocate", "invalid buffer size")
_LONGEST = 2000


def raised_status(error: Exception) -> tuple[Status, str, bool]:
    """Status, reason, and whether the device can no longer be used, for what a device raised."""
    if isinstance(error, Inconclusive):
        return "unknown", str(error), False
    text = str(error).lower()
    if any(mark in text for mark in _LOST):
        return "crash", "the device reported an error that it does not recover from", True
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or any(m in text for m in _MEMORY):
        return "unknown", "the device has too little memory for this configuration", False
    if isinstance(error, NotImplementedError):
        return "unsupported", "the device has no kernel for it", False
    return "unsupported", f"the device raises {type(error).__name__} where the CPU does not", False


def explain(error: Exception) -> str:
    """Type and text, cut where frameworks print whole dispatch tables."""
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def failure_of(found: Judgement) -> tuple[Status, str]:
    """Status and reason of a run that did not pass."""
    detections = [d for d in found.detections if d.kind != "nondeterministic"]
    non_finite = [d for d in detections if d.kind in _NON_FINITE]
    if non_finite:
        return "nan", _non_finite(non_finite[0])
    failed = [output for output in found.outputs if not output.passed]
    named = [f"{d.kind} ({d.where}): {d.message}" for d in detections]
    return "wrong", "; ".join([*map(describe_output, failed), *named])


def _non_finite(detection: Detection) -> str:
    if detection.kind == "nan-appears":
        return f"NaN or infinity appears in output {detection.where}: {detection.message}"
    return f"NaN or infinity vanishes from output {detection.where}: {detection.message}"


def describe_output(output: OutputResult) -> str:
    """The failure of one output in figures."""
    text = f"output {output.name}: {output.count} of {output.elements} elements fail"
    if output.worst is None:
        return text
    worst = output.worst
    return (
        f"{text} ({output.share:.2%}); worst at {list(worst.index)}: device {worst.device}, "
        f"reference {worst.reference}, CPU {worst.cpu}, {_times(output.error_factor)} times what "
        f"is allowed; smallest tolerance that passes: {_times(output.min_tolerance)} of the "
        "largest value"
    )


def _times(value: float | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else value
