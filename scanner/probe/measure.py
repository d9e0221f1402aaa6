"""Measurements of a scan's configurations on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from scanner.backends.mps_facts import fallback_is_on
from scanner.backends.open import reads_fallback_variable
from scanner.probe.autocast import NO_VARIANTS, Variants
from scanner.probe.break_even import BreakEven, break_even_text
from scanner.probe.fallback import combined
from scanner.probe.keeping import Keeping
from scanner.probe.observer import Observer
from scanner.probe.plan import config_key
from scanner.probe.session import Session, opened
from scanner.records import Measurement, OpCall

__all__ = ["measure"]

_PATIENT_S = 5.0
_RUNS = frozenset({"native", "composite", "slow", "fallback", "wrong", "nan"})


def measure(
    calls: Sequence[OpCall],
    device: str,
    environ: Mapping[str, str],
    observer: Observer | None = None,
    options: Mapping[str, Any] | None = None,
    keep: Keeping | None = None,
    fallback: bool | None = None,
    variants: Variants = NO_VARIANTS,
) -> dict[str, Measurement]:
    """`config_key` → what the device did with it.

    Configurations that touch the device with no tensor are left out, and after Ctrl-C those that
    were not reached are `unknown`.

    `options` go to the runner (`stress`, `timing`); what `keep` has from earlier scans, or from
    this one when it was cut short, is not run again. Where the device has a fallback variable, what
    raises without it is run once more with it; `fallback` says which of the two the verdict is
    (None: as `environ` has it). `variants` are run too, and those that run are held against
    float32. Raises `DeviceError` when the device cannot be used.
    """
    watch = observer or Observer()
    wanted = [call for call in calls if _on_device(call)]
    without = False if reads_fallback_variable(device) else None
    with ExitStack() as stack:
        keep = keep or Keeping()
        store = opened(stack, keep.store, watch)
        session = Session(device, environ, options or {}, keep, store, watch)
        measured = session.measured(wanted, fallback=without)
        measured |= _in_half(session, variants, measured, without)
        wanted += [call for call in variants.to_run() if config_key(call) in measured]
        measured |= _with_break_even(session, wanted, measured, without)
        measured |= _with_precision(session, variants, measured, without)
        if without is None:
            return measured
        raised = [call for call in wanted if measured[config_key(call)].status == "unsupported"]
        on = session.further(raised, fallback=True)
    enabled = fallback_is_on(environ) if fallback is None else fallback
    return {key: combined(off, on.get(key), enabled=enabled) for key, off in measured.items()}


def _in_half(
    session: Session,
    variants: Variants,
    measured: Mapping[str, Measurement],
    fallback: bool | None,
) -> dict[str, Measurement]:
    """Variants, after the configurations that they are variants of.

    One whose float32 took long is left out: processors without half-precision arithmetic take ten
    times as long, and the device would be blamed for it.
    """
    left_out: dict[str, Measurement] = {}
    run: list[OpCall] = []
    for key, found in variants.calls.items():
        base = measured[key]
        seconds = float(base.detail.get("seconds", 0.0))
        for call in found.values():
            if config_key(call) in measured:
                continue
            if seconds <= _PATIENT_S:
                run.append(call)
                continue
            reason = f"left out: float32 took {seconds:.0f} s, which would be far more on the CPU"
            left_out[config_key(call)] = Measurement(
                device=base.device, status="unknown", detail={"reason": reason}
            )
    return {**session.further(run, fallback=fallback), **left_out}


def _with_break_even(
    session: Session,
    calls: Sequence[OpCall],
    measured: Mapping[str, Measurement],
    fallback: bool | None,
) -> dict[str, Measurement]:
    """Slow configurations, with what a pass of its own says about larger ones.

    Of its own, since a larger configuration that ends its worker says nothing about this one.
    """
    slow = [call for call in calls if measured[config_key(call)].status == "slow"]
    found = session.further(slow, fallback=fallback, options={"break_even": True})
    return {key: _told(measured[key], result) for key, result in found.items()}


def _with_precision(
    session: Session,
    variants: Variants,
    measured: Mapping[str, Measurement],
    fallback: bool | None,
) -> dict[str, Measurement]:
    """Variants that run, with how exact they are; verdicts are left as they are."""
    found: dict[str, Measurement] = {}
    for dtype, calls in variants.in_dtypes().items():
        present = (call for call in calls if config_key(call) in measured)
        run = [call for call in present if measured[config_key(call)].status in _RUNS]
        results = session.further(run, fallback=fallback, options={"precision": dtype})
        for key, result in results.items():
            more = {"precision": result.detail.get("precision")}
            detail = {**measured[key].detail, **more}
            found[key] = msgspec.structs.replace(measured[key], detail=detail)
    return found


def _told(slow: Measurement, search: Measurement) -> Measurement:
    if detail := search.detail.get("break_even"):
        found = msgspec.convert(detail, BreakEven)
    else:
        died = search.status == "crash"
        found = BreakEven(reached=False, stopped="crash" if died else "unknown")
    timing = {**slow.detail["timing"], "break_even": msgspec.to_builtins(found)}
    reason = f"{slow.detail['reason']}; {break_even_text(found)}"
    told = {**slow.detail, "timing": timing, "reason": reason}
    return msgspec.structs.replace(slow, detail=told)


def _on_device(call: OpCall) -> bool:
    """Ops on tensors that the user keeps on the CPU are not the device's."""
    return any(spec.device != "cpu" for spec in (*call.inputs, *call.outputs))
