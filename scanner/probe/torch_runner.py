"""Runs torch configurations: judged by `execute`, timed by `timing`."""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from scanner.backends.cpu import CpuDevice
from scanner.backends.interface import Device, DeviceFacts, Unusable
from scanner.backends.open import open_device
from scanner.probe.attempt import on_device
from scanner.probe.execute import Options, run_case
from scanner.probe.inputs import drawn
from scanner.probe.outcome import CaseResult
from scanner.probe.rebuild import Operands, bind
from scanner.probe.runner import Ran
from scanner.probe.schema import Schema, schema_of
from scanner.probe.substitutes import DEVICE_SAVED
from scanner.probe.timing import Budget, Contender, Timing, measure
from scanner.records import OpCall

__all__ = ["TimingOptions", "TorchRunner"]


class TimingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for beside the options of `run_case`."""

    timing: bool = False
    """Whether to time what is computed rightly."""
    timing_s: float = 0.5
    """Seconds for each configuration."""


class TorchRunner:
    """See `Runner`. `options` are those of `execute.Options` and `TimingOptions`."""

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._options = msgspec.convert(options, Options)
        self._timing = msgspec.convert(options, TimingOptions)
        self._device: Device = open_device(device)
        self._lost = ""
        # Without it, only the first op that falls back would say so.
        torch.set_warn_always(True)

    @property
    def facts(self) -> DeviceFacts:
        """The device's."""
        return self._device.facts

    def check(self) -> Unusable | None:
        """Refuses a device that has reported an error which it does not recover from."""
        if self._lost:
            return Unusable(reason=self._lost, remedy="Start another process.")
        return self._device.check()

    def run(self, call: OpCall) -> Ran:
        """Judge it, then time it when it is right and timing was asked for."""
        result = run_case(call, self._device, self._options)
        if result.device_lost:
            self._lost = result.error or result.reason
        detail = msgspec.to_builtins(result)
        if result.status != "native" or not self._timing.timing:
            return Ran(status=result.status, reason=result.reason, detail=detail)
        return self._timed(call, result, detail)

    def settle(self) -> None:
        """Wait for the device."""
        self._device.synchronize()

    def held(self) -> int:
        """The most that the device's allocator accounts for under any name."""
        return max(self._device.memory().values(), default=0)

    def trim(self) -> None:
        """Empty the device's cache."""
        self._device.release()

    def _timed(self, call: OpCall, result: CaseResult, detail: dict[str, Any]) -> Ran:
        try:
            timing = self._time(call)
        except Exception as error:
            detail["timing_error"] = f"{type(error).__name__}: {error}"
            return Ran(status=result.status, reason=result.reason, detail=detail)
        if timing is None:
            return Ran(status=result.status, reason=result.reason, detail=detail)
        detail["timing"] = msgspec.to_builtins(timing)
        if not timing.slow:
            return Ran(status=result.status, reason=result.reason, detail=detail)
        reason = (
            f"takes {timing.ratio:.3g} times as long as on the CPU "
            f"({timing.device.median_s * 1e6:.3g} instead of {timing.cpu.median_s * 1e6:.3g} µs)"
        )
        return Ran(status="slow", reason=reason, detail=detail)

    def _time(self, call: OpCall) -> Timing | None:
        """None for an op that needs state of another one that ran before it."""
        schema = schema_of(call.op)
        if schema.op in DEVICE_SAVED:
            return None
        operands = drawn(schema, call, self._options.seed)
        ours = _contender(self._device, schema, call, operands)
        theirs = _contender(CpuDevice(), schema, call, operands)
        with torch.no_grad():
            return measure(ours, theirs, Budget(seconds=self._timing.timing_s))


def _contender(device: Device, schema: Schema, call: OpCall, operands: Operands) -> Contender:
    """The op on tensors of its own; one that writes writes to the same ones over and over."""
    tensors, _ = on_device(device, call, operands)
    where = device.upload(torch.zeros(())).device
    bound = bind(schema, call, tensors, where)
    return Contender(
        run=lambda: device.submit(call.op, bound.args, bound.kwargs), timer=device.timer()
    )
