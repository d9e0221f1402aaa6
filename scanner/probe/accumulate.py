"""A whole step run freely on a device and on the CPU: where do the two part?

Errors add up from op to op here, so what is found is not one guilty op but the first whose result
is further from the raised reference than the CPU's own by more than the rule allows, and the first
that makes a NaN of finite inputs. What one op does by itself, `execute` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

import msgspec
import torch

from scanner.probe.rebuild import dtype_of
from scanner.probe.standards import CONTRACTION, unit
from scanner.probe.trace import Entry, Fingerprint, Replay, Tracer
from scanner.records import Phase

__all__ = ["Accumulated", "Divergence", "Step", "accumulate", "compare_traces"]

Step = Callable[[Tracer], None]
"""Runs one step; sets the tracer's phase to `optimizer` before the optimizer's part."""

MakeStep = Callable[[torch.device, "torch.dtype | None"], Step]
"""Builds the model and its data on a device, floating tensors in a dtype (None: as they are), from
the same initial values each time."""


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """One op of the run."""

    op: str
    phase: Phase
    step: int
    number: int
    """Position among the ops of the device's run."""
    output: int
    error: float
    """Root mean square error relative to that of the reference; infinite for NaN."""
    cpu_error: float
    message: str


class Accumulated(msgspec.Struct, frozen=True, kw_only=True):
    """What a free run showed."""

    ops: int
    """How many the device ran."""
    compared: int
    """How many had a counterpart on the CPU, up to the first random op without one."""
    first: Divergence | None
    """First op past tolerance."""
    first_nan: Divergence | None
    """First op with infinities or NaN that the CPU does not have, made of finite inputs."""
    worst: dict[str, float]
    """Phase → the largest error ÷ allowance."""
    stopped: str = ""
    """Why the comparison ended early."""


def accumulate(make: MakeStep, device: torch.device, steps: int = 1) -> Accumulated:
    """Runs steps on the CPU, on the CPU in double precision and on the device, and compares."""
    replay = Replay()
    cpu = _run(make(torch.device("cpu"), None), steps, Tracer(record=replay))
    raised = _run(make(torch.device("cpu"), torch.float64), steps, Tracer(replay=replay))
    ours = _run(make(device, None), steps, Tracer(replay=replay))
    return compare_traces(ours, cpu, raised)


def _run(step: Step, steps: int, tracer: Tracer) -> list[Entry]:
    with tracer:
        for number in range(steps):
            tracer.step = number
            tracer.phase = "forward"
            step(tracer)
    return tracer.entries


def compare_traces(
    device: Sequence[Entry], cpu: Sequence[Entry], raised: Sequence[Entry]
) -> Accumulated:
    """Compares runs op by op; ops that only one side has (other composites) are passed over."""
    found = _Found()
    for number, place in _pairs(device, cpu):
        if device[number].random:
            found.stopped = f"{device[number].op} draws other numbers on each device"
            break
        right = raised[place] if _same_op(raised, cpu, place) else None
        found.add(number, device[number], cpu[place], right)
    return found.result(len(device))


def _pairs(device: Sequence[Entry], cpu: Sequence[Entry]) -> list[tuple[int, int]]:
    """Positions of ops that correspond, in order."""
    names = [entry.op for entry in device], [entry.op for entry in cpu]
    matcher = SequenceMatcher(None, *names, autojunk=False)
    return [
        (block.a + i, block.b + i)
        for block in matcher.get_matching_blocks()
        for i in range(block.size)
    ]


def _same_op(raised: Sequence[Entry], cpu: Sequence[Entry], place: int) -> bool:
    return place < len(raised) and raised[place].op == cpu[place].op


class _Found:
    """What has been seen so far."""

    def __init__(self) -> None:
        self.first: Divergence | None = None
        self.first_nan: Divergence | None = None
        self.worst: dict[str, float] = {}
        self.stopped = ""
        self._compared = 0

    def add(self, number: int, ours: Entry, cpu: Entry, raised: Entry | None) -> None:
        self._compared += 1
        for output, (mine, theirs) in enumerate(zip(ours.outputs, cpu.outputs, strict=False)):
            right = raised.outputs[output] if raised and output < len(raised.outputs) else None
            if mine.shape != theirs.shape or (right is not None and right.shape != mine.shape):
                continue
            error, own, allowed = _errors(mine, theirs, right)
            self.worst[ours.phase] = max(self.worst.get(ours.phase, 0.0), error / allowed)
            lost = mine.lost > theirs.lost
            past = error > allowed or lost
            if self.first is None and past:
                self.first = _divergence(number, ours, output, error, own, mine)
            if self.first_nan is None and lost and ours.finite_inputs:
                self.first_nan = _divergence(number, ours, output, error, own, mine)

    def result(self, ops: int) -> Accumulated:
        return Accumulated(
            ops=ops,
            compared=self._compared,
            first=self.first,
            first_nan=self.first_nan,
            worst=self.worst,
            stopped=self.stopped,
        )


def _errors(
    mine: Fingerprint, theirs: Fingerprint, right: Fingerprint | None
) -> tuple[float, float, float]:
    """The device's and the CPU's relative error, and what the device is allowed."""
    reference = theirs.samples if right is None else right.samples
    finite = reference.isfinite() & theirs.samples.isfinite() & mine.samples.isfinite()
    scale = float(reference[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
    if not scale:
        same = torch.equal(mine.samples[finite], theirs.samples[finite])
        return (0.0 if same else 1.0), 0.0, unit(torch.float32)
    error = _relative(mine, reference, finite, scale)
    own = _relative(theirs, reference, finite, scale)
    dtype = dtype_of(theirs.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return error, own, own + 1e-2  # whole numbers: a few positions may differ
    allowance = CONTRACTION.allowance(dtype)
    floor = (allowance.relative + allowance.scale) * unit(dtype)
    return error, own, CONTRACTION.factor * own + floor


def _relative(
    mine: Fingerprint, reference: torch.Tensor, finite: torch.Tensor, scale: float
) -> float:
    return float((mine.samples[finite] - reference[finite]).square().mean().sqrt()) / scale


def _divergence(
    number: int, entry: Entry, output: int, error: float, own: float, mine: Fingerprint
) -> Divergence:
    if mine.lost:
        message = f"{mine.lost} elements are infinite or NaN"
    else:
        message = f"relative error {error:.3g}, the CPU's own is {own:.3g}"
    return Divergence(
        op=entry.op,
        phase=entry.phase,
        step=entry.step,
        number=number,
        output=output,
        error=error,
        cpu_error=own,
        message=message,
    )
