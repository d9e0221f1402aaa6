"""Runs a configuration on two simulated releases, with the same arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch
from torch import Tensor

from scanner.backends.interface import DeviceFacts, Inconclusive, Unusable
from scanner.backends.metal_sim import Simulator, open_simulator
from scanner.probe.attempt import on_device
from scanner.probe.expected import copied, dense, same_bits
from scanner.probe.inputs import drawn
from scanner.probe.outcome import number
from scanner.probe.rebuild import Operands, Unbuildable, bind
from scanner.probe.reference import changed_tensors, flat_results
from scanner.probe.runner import Ran
from scanner.probe.schema import Schema, schema_of
from scanner.probe.standards import private_outputs, standard_of
from scanner.records import OpCall
from scanner.sim.study.figures import relative
from scanner.sim.study.interface import Change, Side

__all__ = ["DiffRunner"]


class DiffOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared."""

    after: str
    """Device spec of the later release; the runner's own device is the earlier one."""
    seed: int = 0


@dataclass
class _Run:
    """What one release did."""

    side: Side
    outputs: dict[str, Tensor] = field(default_factory=dict)


class DiffRunner:
    """See `scanner.probe.runner.Runner`. The detail is a `Change`."""

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._options = msgspec.convert(options, DiffOptions)
        self._before = open_simulator(device)
        self._after = open_simulator(self._options.after)

    @property
    def facts(self) -> DeviceFacts:
        """The earlier release's, and which is the other."""
        after = self._after.facts
        details = {**self._before.facts.details, "after": f"{after.framework}, {after.os}"}
        return msgspec.structs.replace(self._before.facts, details=details)

    def check(self) -> Unusable | None:
        """Both must work."""
        return self._before.check() or self._after.check()

    def run(self, call: OpCall) -> Ran:
        """The same call on both."""
        try:
            schema = schema_of(call.op)
            operands = drawn(schema, call, self._options.seed)
        except (LookupError, Unbuildable) as error:
            return Ran(status="unknown", reason=str(error))
        before, after = (
            _run(device, schema, call, copied(operands)) for device in (self._before, self._after)
        )
        change = _change(schema, call, before, after)
        return Ran(status="native", reason="", detail=msgspec.to_builtins(change))

    def fallback_cost(self, call: OpCall) -> dict[str, Any]:
        """Nothing, see `SimRunner`."""
        del call
        return {}

    def settle(self) -> None:
        """Nothing is ever pending."""

    def held(self) -> int:
        """The emulators' memory is the process' own."""
        return 0

    def trim(self) -> None:
        """Puts both processes back to their snapshots."""
        self._before.release()
        self._after.release()


def _run(device: Simulator, schema: Schema, call: OpCall, operands: Operands) -> _Run:
    device.forget()
    try:
        tensors, _ = on_device(device, call, operands)
        bound = bind(schema, call, tensors, torch.device("mps"))
        seen = device.observe(call.op, bound.args, bound.kwargs)
        if seen.outcome in {"unknown", "raises"}:
            return _Run(Side(outcome=seen.outcome, message=seen.message))
        live = flat_results(device.results(seen), changed_tensors(schema, call, tensors))
        outputs = {name: device.download(tensor) for name, tensor in live.items()}
    except Inconclusive as error:
        return _Run(Side(outcome="unknown", message=str(error)))
    except Exception as error:  # raised on the way to the device, as for float64
        return _Run(Side(outcome="raises", message=str(error)))
    return _Run(Side(outcome=seen.outcome), outputs)


def _change(schema: Schema, call: OpCall, before: _Run, after: _Run) -> Change:
    change = Change(before=before.side, after=after.side)
    shared = {name: (before.outputs[name], after.outputs[name])
              for name in before.outputs if name in after.outputs}  # fmt: skip
    layouts = [_layout(name, *pair) for name, pair in shared.items()]
    hidden = private_outputs(schema, call)
    compared = standard_of(schema, call).compares_values
    elements, differs, largest = 0, 0, 0.0
    for name, (old, new) in shared.items():
        if old.shape != new.shape or name in hidden or not compared:
            continue
        old, new = dense(old), dense(new)
        elements += old.numel()
        if same_bits(old, new):
            continue
        alike = (old == new) | (old.isnan() & new.isnan())
        differs += int((~alike).sum())
        largest = max(largest, float(relative(new, old, old.dtype).max()))
    return msgspec.structs.replace(
        change,
        elements=elements,
        differs=differs,
        max_rel=number(largest),
        layout="; ".join(text for text in layouts if text),
    )


def _layout(name: str, old: Tensor, new: Tensor) -> str:
    """How metadata of one output has changed; strides of single elements mean nothing."""
    if old.dtype != new.dtype:
        return f"output {name}: {str(old.dtype)[6:]} became {str(new.dtype)[6:]}"
    if old.shape != new.shape:
        return f"output {name}: shape {tuple(old.shape)} became {tuple(new.shape)}"
    sizes = old.shape
    was, now = ([s for s, n in zip(t.stride(), sizes, strict=True) if n > 1] for t in (old, new))
    return f"output {name}: strides {was} became {now}" if was != now and old.numel() else ""
