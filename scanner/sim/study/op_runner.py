"""Calls one op of a simulated release and shows everything that was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from scanner.backends.interface import DeviceFacts, Inconclusive, Unusable
from scanner.backends.metal_sim import Simulator, open_simulator
from scanner.errors import UsageError
from scanner.probe.attempt import on_device
from scanner.probe.expected import Expected, dense
from scanner.probe.rebuild import Operands, Unbuildable, bind
from scanner.probe.reference import changed_tensors, flat_results
from scanner.probe.runner import Ran
from scanner.probe.schema import Schema, schema_of
from scanner.probe.standards import standard_of
from scanner.records import OpCall
from scanner.sim import trace
from scanner.sim.call import Call
from scanner.sim.shaders.functions.interface import Ulp, directions
from scanner.sim.study.arguments import parse_arguments
from scanner.sim.study.figures import Compared, figures
from scanner.sim.study.interface import LaunchSeen, OpAnswer, PathStep
from scanner.sim.study.request import request

__all__ = ["OpOptions", "OpRunner"]

_WIDEST = 1 << 31


class OpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked."""

    args: str = ""
    """See `arguments`; empty to draw what the op requires."""
    dtype: str = "float32"
    seed: int = 0
    ulp: Ulp = "nearest"
    """`worst` also runs approximate functions at the ends of their allowed error."""


class _Asked(NamedTuple):
    """One call with its values and what the CPU says about it."""

    schema: Schema
    call: OpCall
    operands: Operands
    expected: Expected


class OpRunner:
    """See `scanner.probe.runner.Runner`. The detail is an `OpAnswer`, or `{"misfit", "remedy"}`."""

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._options = msgspec.convert(options, OpOptions)
        self._device = open_simulator(device)

    @property
    def facts(self) -> DeviceFacts:
        """The simulator's."""
        return self._device.facts

    def check(self) -> Unusable | None:
        """As the simulator."""
        return self._device.check()

    def run(self, call: OpCall) -> Ran:
        """Calls the op that `call` names; its inputs and attributes are not looked at."""
        self._device.forget()
        try:
            answer = self._answer(call.op)
        except UsageError as error:
            detail = {"misfit": error.message, "remedy": error.remedy}
            return Ran(status="unknown", reason=error.message, detail=detail)
        detail = msgspec.to_builtins(answer)
        known = answer.outcome != "unknown"
        return Ran(status="native" if known else "unknown", reason=answer.message, detail=detail)

    def fallback_cost(self, call: OpCall) -> dict[str, Any]:
        """Nothing, see `SimRunner`."""
        del call
        return {}

    def settle(self) -> None:
        """Nothing is ever pending."""

    def held(self) -> int:
        """The emulator's memory is the process' own."""
        return 0

    def trim(self) -> None:
        """Nothing is cached."""

    def _answer(self, op: str) -> OpAnswer:
        bare = self._bare(op)
        try:
            schema = schema_of(op)
        except LookupError as error:
            return msgspec.structs.replace(bare, message=f"no reference: {error}")
        items = parse_arguments(self._options.args, self._options.dtype)
        try:
            call, operands = request(schema, items, self._options.dtype, self._options.seed)
        except Unbuildable as error:
            return msgspec.structs.replace(bare, message=str(error))
        expected = Expected(
            schema, call, operands, standard_of(schema, call), widest=_WIDEST, adversarial=True
        )
        if expected.cpu.error is not None and not items:
            raise UsageError(
                f"{op} cannot be drawn arguments for: the CPU raises "
                f"{str(expected.cpu.error).splitlines()[0]}",
                remedy=f"Give them with --args. The schema is {schema.func._schema}",
            )
        asked = _Asked(schema, call, operands, expected)
        answer = self._called(bare, asked)
        if self._options.ulp == "nearest" or answer.error is None or not answer.launches:
            return answer
        return self._with_ends(answer, asked)

    def _with_ends(self, answer: OpAnswer, asked: _Asked) -> OpAnswer:
        """The answer with its figures at each end; one that is not executed there is unknown."""
        ends = {}
        try:
            for direction in directions(self._options.ulp):
                self._device.lean(direction)
                leaning = self._called(answer, asked)
                if leaning.error is None or leaning.outcome == "unknown":
                    message = f"approximate functions {direction}: {leaning.message}"
                    return msgspec.structs.replace(answer, outcome="unknown", message=message)
                ends[direction] = leaning.error
        finally:
            self._device.lean("nearest")
        return msgspec.structs.replace(answer, ends=ends)

    def _bare(self, op: str) -> OpAnswer:
        facts = self._device.facts
        drawn = f"drawn over the whole range, seed {self._options.seed}"
        return OpAnswer(
            op=op,
            torch=self._device.target.version,
            dtype=self._options.dtype,
            outcome="unknown",
            message="",
            macos=facts.os.removeprefix("macOS ").partition(" ")[0],
            gpu=facts.name,
            args=self._options.args or drawn,
        )

    def _called(self, bare: OpAnswer, asked: _Asked) -> OpAnswer:
        device = self._device
        schema, call, operands, expected = asked
        try:
            tensors, _ = on_device(device, call, operands)
            bound = bind(schema, call, tensors, torch.device("mps"))
            seen = device.observe(call.op, bound.args, bound.kwargs)
        except Inconclusive as error:
            return msgspec.structs.replace(bare, message=str(error))
        except TypeError as error:  # raised on the way to the device: it has no such dtype
            message = str(error)
            return msgspec.structs.replace(
                bare, outcome="raises", message=message, exception="TypeError"
            )
        answer = _seen(bare, seen)
        if seen.outcome in {"unknown", "raises"} or expected.cpu.error is not None:
            return answer
        live = flat_results(device.results(seen), changed_tensors(schema, call, tensors))
        named = {spec.name: t for spec, t in zip(call.inputs, operands.tensors, strict=True)}
        found = figures(_compared(device, live, expected), named)
        return msgspec.structs.replace(answer, error=found)


def _compared(device: Simulator, live: Mapping[str, Tensor], expected: Expected) -> list[Compared]:
    """Outputs whose shape both sides agree on; random and undefined values say nothing."""
    if not expected.standard.compares_values:
        return []
    raised = expected.raised.outputs if expected.raised is not None else {}
    found = []
    for name, reference in expected.cpu.outputs.items():
        if name not in live or live[name].shape != reference.shape:
            continue
        ours = dense(device.download(live[name])).to(dense(reference).dtype)
        wide = raised.get(name)
        usable = wide is not None and wide.shape == reference.shape
        found.append(
            Compared(
                name, ours, dense(reference), dense(wide) if wide is not None and usable else None
            )
        )
    return found


def _seen(bare: OpAnswer, call: Call) -> OpAnswer:
    launches = [event for event in call.events if isinstance(event, trace.Launch)]
    graphs = [event for event in call.events if isinstance(event, trace.GraphRun)]
    return msgspec.structs.replace(
        bare,
        outcome=call.outcome,
        message=call.message,
        exception=call.error,
        launches=tuple(
            LaunchSeen(kernel=e.kernel, grid=e.grid, threadgroup=e.threadgroup, mode=e.mode)
            for e in launches
        ),
        graph=tuple(
            node.selector for run in graphs for node in run.nodes if node.selector != "placeholder"
        ),
        path=tuple(
            PathStep(op=e.op, depth=e.depth) for e in call.events if isinstance(e, trace.Dispatch)
        ),
        fallbacks=(*call.fallbacks, *(f"LAPACK {name}" for name in dict.fromkeys(call.routines))),
        warnings=call.warnings,
        findings=call.findings,
        waits=sum(isinstance(e, trace.Commit) and e.wait for e in call.events),
        allocated=sum(
            e.nbytes
            for e in call.events
            if isinstance(e, trace.Allocation) and e.kind == "allocate"
        ),
    )
