"""The truth about ops that run on the CPU: with the fallback variable, without it, at what cost.

Torch reads PYTORCH_ENABLE_MPS_FALLBACK when it is imported, so each setting is a worker of its own,
and a measurement of its own. Here two measurements of one configuration become one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.probe.timing import Series
from scanner.records import Measurement
from scanner.units import bytes_text, seconds_text

__all__ = ["FallbackCost", "combined", "cost_text"]


class FallbackCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one call costs that runs on the CPU although its tensors are on the device."""

    device: Series
    """The call with everything: waiting for the device, copying out, computing, copying back."""
    cpu: Series
    """The same op on tensors that are on the CPU already."""
    lost_s: float
    """Seconds a call that the way through the device loses; of medians, 0 when it loses nothing."""
    bytes_out: int
    """Of the tensors that the configuration reads from the device."""
    bytes_back: int
    """Of those that it returns or writes there."""


def cost_text(cost: FallbackCost) -> str:
    """The cost in words, beginning with `a call`."""
    return (
        f"a call takes {seconds_text(cost.device.median_s)} with waiting for the device and "
        f"copying {bytes_text(cost.bytes_out)} out and {bytes_text(cost.bytes_back)} back, "
        f"{seconds_text(cost.cpu.median_s)} on the CPU alone"
    )


def combined(off: Measurement, on: Measurement | None, *, enabled: bool) -> Measurement:
    """One measurement out of two of the same configuration.

    `off` was taken without the variable, `on` with it; `on` is None when it was not taken, since
    the op did not raise. `enabled` says which of the two the scan is about. The detail `fallback`
    tells of both.
    """
    if on is None:
        return off if off.status != "fallback" else _told(off, {"off": _side(off)}, "")
    sides = {"off": _side(off), "on": _side(on)}
    if enabled:
        return _told(on, sides, f"; without {FALLBACK_VARIABLE} it raises")
    if on.status == "fallback":
        return _told(off, sides, f"; with {FALLBACK_VARIABLE}=1 it {_reason(on)}")
    if on.status == off.status:
        return _told(off, sides, f"; with {FALLBACK_VARIABLE}=1 it raises too")
    return _told(off, sides, f"; with {FALLBACK_VARIABLE}=1: {on.status}, {_reason(on)}")


def _told(measurement: Measurement, sides: dict[str, Any], more: str) -> Measurement:
    detail = {**measurement.detail, "reason": _reason(measurement) + more, "fallback": sides}
    return msgspec.structs.replace(measurement, detail=detail)


def _side(measurement: Measurement) -> dict[str, Any]:
    return {
        "status": measurement.status,
        "reason": _reason(measurement),
        "ops": measurement.detail.get("fallbacks", []),
        "cost": measurement.detail.get("fallback_cost"),
    }


def _reason(measurement: Measurement) -> str:
    return str(measurement.detail.get("reason", ""))
