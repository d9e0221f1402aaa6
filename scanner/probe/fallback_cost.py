"""Measures what it costs that a configuration runs on the CPU although its tensors do not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from scanner.backends.cpu import CpuDevice
from scanner.backends.interface import Device
from scanner.probe.contender import contender
from scanner.probe.fallback import FallbackCost
from scanner.probe.inputs import drawn
from scanner.probe.rebuild import dtype_of
from scanner.probe.schema import Schema, schema_of
from scanner.probe.substitutes import DEVICE_SAVED
from scanner.probe.timing import Budget, Contender, measure
from scanner.records import OpCall, TensorSpec

__all__ = ["fallback_cost"]

# Single calls: a step that goes on after each would not wait for several at once.
_BUDGET = Budget(seconds=0.1, warmup_s=0.0, sample_s=0.0, least=5, most=20)


def fallback_cost(device: Device, call: OpCall, seed: int) -> FallbackCost | None:
    """None for an op that needs state of another one that ran before it.

    What the op raises is raised.
    """
    schema = schema_of(call.op)
    if schema.op in DEVICE_SAVED:
        return None
    operands = drawn(schema, call, seed)
    ours = contender(device, schema, call, operands)
    theirs = contender(CpuDevice(), schema, call, operands)
    with torch.no_grad():
        timing = measure(Contender(run=ours.run, timer=_clock(device)), theirs, _BUDGET)
    return FallbackCost(
        device=timing.device,
        cpu=timing.cpu,
        lost_s=max(0.0, timing.device.median_s - timing.cpu.median_s),
        bytes_out=sum(_bytes(spec) for spec in call.inputs if spec.device != "cpu"),
        bytes_back=sum(_bytes(spec) for spec in (*call.outputs, *_written(schema, call))),
    )


def _clock(device: Device) -> Callable[[Callable[[], Any]], float]:
    """Wall time: the device's own clock does not see how long the host is kept."""

    def timer(run: Callable[[], Any]) -> float:
        device.synchronize()
        start = time.perf_counter()
        run()
        device.synchronize()
        return time.perf_counter() - start

    return timer


def _written(schema: Schema, call: OpCall) -> list[TensorSpec]:
    """Arguments that the op changes, unless it returns them: then they are among the outputs."""
    returns = schema.func._schema.returns
    if any(each.alias_info is not None and each.alias_info.is_write for each in returns):
        return []
    return [spec for spec in call.inputs if spec.name.partition("[")[0] in schema.written]


def _bytes(spec: TensorSpec) -> int:
    return torch.Size(spec.shape).numel() * dtype_of(spec.dtype).itemsize
