"""Runs torch configurations: judged by `execute`, timed by `timing`."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import torch

from scanner.backends.cpu import CpuDevice
from scanner.backends.dispatch import route
from scanner.backends.interface import Device, DeviceFacts, Unusable
from scanner.backends.open import open_device
from scanner.probe.break_even import (
    BreakEven,
    Ladder,
    Limit,
    find_break_even,
)
from scanner.probe.contender import contender
from scanner.probe.execute import Options, run_case
from scanner.probe.fallback_cost import fallback_cost
from scanner.probe.grow import growth_of
from scanner.probe.inputs import drawn
from scanner.probe.precision import precision_of
from scanner.probe.runner import Ran
from scanner.probe.schema import Schema, schema_of
from scanner.probe.substitutes import DEVICE_SAVED
from scanner.probe.timing import Budget, Timing, measure
from scanner.records import OpCall
from scanner.units import seconds_text

__all__ = ["TimingOptions", "TorchRunner"]

_GLANCE = Budget(seconds=0.03, warmup_s=0.005, sample_s=0.0005, least=3, most=7)
"""For sizes on the way to the break-even, of which only the winner counts."""
_LONG_S = 20.0
"""A configuration that took longer to be judged is not timed: its deadline would pass."""
_RAISED = frozenset({"unsupported", "crash", "unknown"})


class TimingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for beside the options of `run_case`."""

    timing: bool = False
    """Whether to time what is computed rightly."""
    timing_s: float = 0.5
    """Seconds for each configuration."""
    break_even: bool = False
    """Only to look for the size from which on the device wins, and to judge nothing."""
    precision: str = ""
    """Only to hold variants in this dtype against float32, and to judge nothing."""


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
        if self._timing.break_even:
            return self._searched(call)
        if self._timing.precision:
            return self._beside(call, self._timing.precision)
        start = time.perf_counter()
        result = run_case(call, self._device, self._options)
        if result.device_lost:
            self._lost = result.error or result.reason
        detail = msgspec.to_builtins(result)
        first_s = detail.pop("first_s")  # a time, which belongs to the others
        ran = Ran(status=result.status, reason=result.reason, detail=detail)
        if result.status == "native" and self._timing.timing:
            if time.perf_counter() - start > _LONG_S:
                ran = _untimed(ran, "one run takes too long for several")
            else:
                ran = self._timed(call, ran, first_s)
        return self._dispatched(ran, call.op)

    def fallback_cost(self, call: OpCall) -> dict[str, Any]:
        """See `FallbackCost`."""
        cost = fallback_cost(self._device, call, self._options.seed)
        found: dict[str, Any] = msgspec.to_builtins(cost) if cost is not None else {}
        return found

    def settle(self) -> None:
        """Wait for the device."""
        self._device.synchronize()

    def held(self) -> int:
        """The most that the device's allocator accounts for under any name."""
        return max(self._device.memory().values(), default=0)

    def trim(self) -> None:
        """Empty the device's cache."""
        self._device.release()

    def _dispatched(self, ran: Ran, op: str) -> Ran:
        """What the dispatcher says beside; an op that it sends to the CPU need not say so."""
        where = route(op, self._device.facts.backend)
        if where is None:
            return ran
        away = where == "cpu" or (where == "catch-all" and ran.status not in _RAISED)
        return msgspec.structs.replace(
            ran, detail={**ran.detail, "dispatch": where}, fallbacks=(op,) if away else ()
        )

    def _timed(self, call: OpCall, ran: Ran, first_s: float) -> Ran:
        try:
            timing = self._time(call, first_s)
        except Exception as error:
            return _untimed(ran, f"{type(error).__name__}: {error}")
        if timing is None:
            return ran
        detail = {**ran.detail, "timing": msgspec.to_builtins(timing)}
        if not timing.slow:
            return msgspec.structs.replace(ran, detail=detail)
        reason = (
            f"takes {timing.ratio:.3g} times as long as on the CPU "
            f"({seconds_text(timing.device.median_s)} instead of "
            f"{seconds_text(timing.cpu.median_s)})"
        )
        return Ran(status="slow", reason=reason, detail=detail)

    def _time(self, call: OpCall, first_s: float) -> Timing | None:
        """None for an op that needs state of another one that ran before it.

        `first_s` was taken when the op was judged: by now everything is compiled.
        """
        schema = schema_of(call.op)
        if schema.op in DEVICE_SAVED:
            return None
        timing = self._raced(schema, call, Budget(seconds=self._timing.timing_s))
        device = msgspec.structs.replace(timing.device, first_s=first_s)
        return msgspec.structs.replace(timing, device=device)

    def _raced(self, schema: Schema, call: OpCall, budget: Budget) -> Timing:
        operands = drawn(schema, call, self._options.seed)
        ours = contender(self._device, schema, call, operands)
        theirs = contender(CpuDevice(), schema, call, operands)
        with torch.no_grad():
            return measure(ours, theirs, budget)

    def _searched(self, call: OpCall) -> Ran:
        found = self._break_even(schema_of(call.op), call)
        return Ran(status="slow", reason="", detail={"break_even": msgspec.to_builtins(found)})

    def _beside(self, call: OpCall, dtype: str) -> Ran:
        found = precision_of(self._device, call, dtype, self._options.seed)
        detail = {"precision": msgspec.to_builtins(found)} if found is not None else {}
        return Ran(status="native", reason="", detail=detail)

    def _break_even(self, schema: Schema, call: OpCall) -> BreakEven:
        limit = Limit(seconds=4 * self._timing.timing_s)
        start = time.perf_counter()
        growth = growth_of(schema, call, self._options.seed)
        if growth is None:
            return BreakEven(reached=False, stopped="fixed")
        if time.perf_counter() - start > limit.seconds:
            return BreakEven(reached=False, stopped="time")

        def time_at(factor: int) -> tuple[float, float]:
            timing = self._raced(schema, growth.at(factor), _GLANCE)
            return timing.device.median_s, timing.cpu.median_s

        return find_break_even(Ladder(size_of=growth.size, time_at=time_at), limit)


def _untimed(ran: Ran, why: str) -> Ran:
    return msgspec.structs.replace(ran, detail={**ran.detail, "timing_error": why})
