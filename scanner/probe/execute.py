"""Runs one configuration on a device and says what became of it.

Whatever the op does short of ending the process becomes a `CaseResult`; an exception that leaves
`run_case` is a bug of opscan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from torch import Tensor

from scanner.backends.interface import Device
from scanner.probe.attempt import Attempt, attempt
from scanner.probe.detectors import nondeterministic
from scanner.probe.expected import Expected, dense, flushed
from scanner.probe.gradient_check import check_gradient
from scanner.probe.judge import Judgement, judge
from scanner.probe.outcome import CaseResult, Detection
from scanner.probe.poison import PATTERNS, still_poisoned
from scanner.probe.rebuild import Operands, Unbuildable
from scanner.probe.schema import Schema, schema_of
from scanner.probe.standards import private_outputs, standard_of
from scanner.probe.trials import CERTAIN, PLAIN, call_for, trials
from scanner.probe.verdict import explain, failure_of, raised_status
from scanner.records import OpCall

__all__ = ["Options", "run_case"]


@dataclass(frozen=True)
class Options:
    """How thoroughly a configuration is run."""

    seed: int = 0
    repeats: int = 1
    """Further runs on equal inputs, to see whether the result is the same."""
    gradients: bool = True
    stress: bool = False
    """Whether to run adversarial values too, see `stress`."""
    widest: int = 1 << 31
    """Bytes of arguments in double precision; larger ones are judged without a raised reference."""


def run_case(
    call: OpCall,
    device: Device,
    options: Options = Options(),
    values: Sequence[Tensor] | None = None,
) -> CaseResult:
    """One configuration on one device; see `CaseResult`.

    `values` are the argument values of the user's step, CPU tensors in the order of `call.inputs`;
    without them values are drawn by the operands' roles.
    """
    try:
        schema = schema_of(call.op)
    except LookupError as error:
        return CaseResult(op=call.op, status="unknown", reason=str(error), seed=options.seed)
    worst: CaseResult | None = None
    names = []
    cases = trials(schema, call, options.seed, values, stress=options.stress)
    for name, operands in cases:
        if isinstance(operands, Unbuildable):
            result = CaseResult(op=call.op, status="unknown", reason=str(operands))
        else:
            given, plain = call_for(schema, call, name), name in PLAIN
            result = _Case(schema, given, device, options, operands, plain=plain).run()
        # Adversarial values that the reference itself refuses say nothing.
        if result.status == "unknown" and worst is not None:
            continue
        names.append(name)
        if worst is None or name == CERTAIN or result.status not in _GOOD:
            worst = msgspec.structs.replace(result, trial=name, seed=options.seed)
        if result.status not in _GOOD:
            break
    assert worst is not None
    return msgspec.structs.replace(worst, trials=tuple(names))


_GOOD = frozenset({"native", "skipped"})


class _Case:
    """One configuration with one set of values."""

    def __init__(
        self,
        schema: Schema,
        call: OpCall,
        device: Device,
        options: Options,
        operands: Operands,
        *,
        plain: bool,
    ) -> None:
        self._device = device
        self._options = options
        self._standard = standard_of(schema, call)
        self._plain = plain
        self._first_s = 0.0
        self._expected = self._expecting(schema, call, operands)

    def _expecting(self, schema: Schema, call: OpCall, operands: Operands) -> Expected:
        return Expected(
            schema,
            call,
            operands,
            self._standard,
            widest=self._options.widest,
            adversarial=not self._plain,
        )

    def run(self) -> CaseResult:
        """Everything that is asked for; gradients only of plain values, since among equal ones
        any may receive them."""
        reference = self._expected.cpu
        if reference.error is not None:
            # The device may still crash on it, but what it should do is not known.
            return self._result("unknown", reason="the CPU reference raises", error=reference.error)
        first = self._attempt(0)
        self._first_s = first.seconds
        if first.error is not None:
            return self._raised(first.error)
        found = self._judge(first)
        error = self._repeat(first, found)
        if error is not None:
            return self._raised(error)
        return self._concluded(found)

    def _judge(self, run: Attempt) -> Judgement:
        """Devices may take subnormal numbers for zero: then that is the configuration."""
        found = judge(self._expected, run)
        expected = self._expected
        without = None if found.passed else flushed(expected.operands)
        if without is None:
            return found
        other = self._expecting(expected.schema, expected.call, without)
        again = judge(other, run) if other.cpu.error is None else found
        harmed = {"input-clobbered", "out-of-bounds"}
        again.detections = [d for d in again.detections if d.kind not in harmed]
        return again if again.passed else found

    def _attempt(self, number: int) -> Attempt:
        outputs = list(self._expected.cpu.outputs.values())
        expected = self._expected
        pattern = PATTERNS[number % len(PATTERNS)]
        return attempt(
            self._device, expected.schema, expected.call, expected.operands, outputs, pattern
        )

    def _repeat(self, first: Attempt, found: Judgement) -> Exception | None:
        """Runs again; what differs is noted, and a later run that fails fails the case."""
        if not self._standard.compares_values:
            return None
        for number in range(1, self._options.repeats + 1):
            run = self._attempt(number)
            if run.error is not None:
                return run.error
            found.detections.extend(self._unwritten(first, run))
            changes = [
                detection
                for name, output in first.outputs.items()
                if name in run.outputs
                for detection in nondeterministic(name, output, run.outputs[name])
            ]
            if changes and found.passed:
                again = self._judge(run)
                found.outputs, found.detections = again.outputs, again.detections
            found.detections.extend(changes)
        return None

    def _unwritten(self, first: Attempt, second: Attempt) -> Iterator[Detection]:
        hidden = private_outputs(self._expected.schema, self._expected.call)
        for name, expected in self._expected.cpu.outputs.items():
            if name in hidden:
                continue
            ours, again = first.outputs.get(name), second.outputs.get(name)
            if ours is None or again is None or ours.shape != again.shape:
                continue
            count = still_poisoned(ours, again, dense(expected))
            if count:
                message = f"{count} of {ours.numel()} elements were never written"
                yield Detection(kind="unwritten", where=name, message=message)

    def _concluded(self, found: Judgement) -> CaseResult:
        if not found.passed:
            if not self._expected.reproducible:
                return self._result("unknown", reason="the CPU reference is not reproducible")
            status, reason = failure_of(found)
            return self._result(status, reason=reason, found=found)
        if self._standard.kind == "undefined":
            reason = "its values are undefined by contract; dtype, shape and strides agree"
            return self._result("skipped", reason=reason, found=found)
        wanted = self._plain and self._options.gradients
        if not wanted or not self._standard.compares_values:
            return self._result("native", found=found)
        product, more = check_gradient(self._device, self._expected)
        found.detections.extend(more)
        result = msgspec.structs.replace(self._result("native", found=found), gradient=product)
        if product is None or product.status == "native":
            return result
        if product.status == "skipped":
            # What is right stays right; the reason says which part of it nobody has seen.
            reason = f"its gradient is not checked: {product.reason}"
            return msgspec.structs.replace(result, reason=reason)
        reason = f"its gradient: {product.reason}"
        return msgspec.structs.replace(result, status=product.status, reason=reason)

    def _raised(self, error: Exception) -> CaseResult:
        if not self._plain and self._expected.refused is not None:
            return self._result("unknown", reason="the CPU refuses these values too", error=error)
        status, reason, lost = raised_status(error)
        result = self._result(status, reason=reason, error=error)
        return msgspec.structs.replace(result, device_lost=lost)

    def _result(
        self,
        status: str,
        *,
        reason: str = "",
        error: Exception | None = None,
        found: Judgement | None = None,
    ) -> CaseResult:
        return CaseResult(
            op=self._expected.call.op,
            status=status,  # type: ignore[arg-type]
            reason=reason,
            error=explain(error) if error is not None else "",
            outputs=tuple(found.outputs) if found else (),
            detections=tuple(found.detections) if found else (),
            first_s=self._first_s,
        )
