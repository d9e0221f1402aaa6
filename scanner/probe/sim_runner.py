"""Runs configurations on a simulated release: judged as on any device, and marked as simulated."""

from __future__ import annotations

from typing import Any

import msgspec

from scanner.backends.interface import Inconclusive
from scanner.backends.metal_sim import Simulator, UploadError
from scanner.probe.outcome import CaseResult
from scanner.probe.runner import Ran
from scanner.probe.sim_ulp import UlpOptions, weighed
from scanner.probe.torch_runner import TorchRunner
from scanner.records import OpCall
from scanner.sim import trace
from scanner.sim.call import Call
from scanner.sim.shaders.functions.interface import Direction

__all__ = ["SimRunner"]

_NO_GRADIENT = {
    "status": "skipped",
    "reason": "gradients are not simulated: the step's backward ops are, each by itself",
    "outputs": [],
}
_LISTED = 20
_LONGEST = 300


class SimRunner(TorchRunner):
    """See `Runner`. Gradients and timing are left out, whatever `options` say.

    With `ulp="worst"` a configuration is run again at each end of what approximate functions may
    err; a status that changes with it is *unknown*.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        super().__init__(device, {**options, "gradients": False, "timing": False})
        assert isinstance(self._device, Simulator)
        self._simulator = self._device
        self._directions = msgspec.convert(options, UlpOptions).directions

    def run(self, call: OpCall) -> Ran:
        """Judge it; what the simulator cannot tell is `unknown` with the reason."""
        nearest = self._judged(call)
        launched = any(
            isinstance(event, trace.Launch)
            for _, seen in self._simulator.seen
            for event in seen.events
        )
        if not self._directions or not launched:
            return nearest
        try:
            return weighed(nearest, {each: self._at(call, each) for each in self._directions})
        finally:
            self._simulator.lean("nearest")

    def _at(self, call: OpCall, direction: Direction) -> Ran:
        self._simulator.lean(direction)
        return self._judged(call)

    def _judged(self, call: OpCall) -> Ran:
        self._simulator.forget()
        try:
            ran = _quoting(super().run(call))
        except Inconclusive as error:
            result = CaseResult(op=call.op, status="unknown", reason=str(error))
            ran = Ran(status="unknown", reason=str(error), detail=msgspec.to_builtins(result))
        except UploadError as error:
            said = f"TypeError: {error}"
            result = CaseResult(op=call.op, status="unsupported", reason="", error=said)
            detail = msgspec.to_builtins(result)
            ran = _quoting(Ran(status="unsupported", reason="", detail=detail))
        return self._marked(ran)

    def fallback_cost(self, call: OpCall) -> dict[str, Any]:
        """Nothing: how long an emulator takes says nothing about a Mac."""
        del call
        return {}

    def _marked(self, ran: Ran) -> Ran:
        calls = [call for _, call in self._simulator.seen]
        through_graph = any(call.runs or call.path == "native-graph" for call in calls)
        detail = {
            **ran.detail,
            "evidence": "simulated-graph" if through_graph else "simulated",
            "simulation": _summary(calls),
        }
        if detail.get("gradient") is None:
            detail["gradient"] = _NO_GRADIENT
        fallen = (name for op, call in self._simulator.seen for name in _fallbacks(op, call))
        return msgspec.structs.replace(ran, detail=detail, fallbacks=tuple(dict.fromkeys(fallen)))


def _quoting(ran: Ran) -> Ran:
    """What the release raises belongs into the reason: nobody else will see it raised."""
    if ran.status != "unsupported":
        return ran
    kind, _, text = str(ran.detail.get("error", "")).partition(": ")
    first = text.partition("\n")[0].partition(". ")[0][:_LONGEST]
    return msgspec.structs.replace(ran, reason=f"it raises {kind}: {first}")


def _summary(calls: list[Call]) -> dict[str, Any]:
    """What the release's code did, every run together."""
    kernels = [e.kernel for call in calls for e in call.events if isinstance(e, trace.Launch)]
    findings = [finding for call in calls for finding in call.findings]
    notes = [note for call in calls for note in call.notes]
    return {
        "paths": sorted({call.path for call in calls}),
        "kernels": list(dict.fromkeys(kernels))[:_LISTED],
        "findings": list(dict.fromkeys(findings))[:_LISTED],
        "notes": list(dict.fromkeys(notes))[:_LISTED],
    }


def _fallbacks(op: str, call: Call) -> list[str]:
    """Ops that the CPU computed; a routine of LAPACK stands behind the op that called it."""
    if call.path != "fallback":
        return []
    if call.fallbacks:
        return list(call.fallbacks)
    return [f"{op} (LAPACK {', '.join(dict.fromkeys(call.routines))})"]
