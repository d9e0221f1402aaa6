"""Holds one run on a device against the reference: outputs, metadata, side effects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from scanner.probe.arrangements import answers
from scanner.probe.attempt import Attempt
from scanner.probe.compare import Comparison, Context, compare, compare_exactly
from scanner.probe.detectors import clobbered, failure_shapes, ignored, metadata
from scanner.probe.distributions import Sample, distribution_faults
from scanner.probe.expected import Expected, dense, same_bits, same_elements
from scanner.probe.families import LEFT_TO_THE_CALLER, OWN_PRECISION
from scanner.probe.invariants import invariants
from scanner.probe.outcome import Detection, OutputResult
from scanner.probe.reference import evaluate
from scanner.probe.selection import selects_the_same
from scanner.probe.standards import (
    LINALG,
    Standard,
    loose_strides,
    off_by_one,
    private_outputs,
)
from scanner.probe.terms import terms

__all__ = ["Judgement", "add", "compared", "judge"]

_LOCAL = frozenset({"exact", "pointwise", "stepped"})
"""Kinds of op in which one element cannot reach others."""


@dataclass
class Judgement:
    """What was found in one run."""

    outputs: list[OutputResult] = field(default_factory=list)
    detections: list[Detection] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Nothing failed; a note of nondeterminism alone is no failure."""
        noted = all(detection.kind == "nondeterministic" for detection in self.detections)
        return noted and all(output.passed for output in self.outputs)


def judge(expected: Expected, run: Attempt) -> Judgement:
    """Compares a run that raised nothing with a reference that raised nothing."""
    found = Judgement()
    cpu = _aligned(expected, run)
    hidden = private_outputs(expected.schema, expected.call)
    for name, reference in cpu.items():
        if name not in run.live:
            if name in hidden or name in LEFT_TO_THE_CALLER.get(expected.schema.family, ()):
                continue
            message = "the CPU returns this output, the device does not"
            found.detections.append(Detection(kind="missing-output", where=name, message=message))
        elif name not in hidden:
            found.detections.extend(_metadata(expected, name, run.live[name], reference))
    found.detections.extend(_side_effects(expected, run))
    values = _values if expected.standard.compares_values else _chances
    values(expected, run, {k: v for k, v in cpu.items() if k not in hidden}, found)
    if not found.passed or expected.standard.kind == "random":
        found.detections.extend(_unwritten_arguments(expected, run))
    return found


def _aligned(expected: Expected, run: Attempt) -> dict[str, Tensor]:
    """The CPU's outputs; where the device returns another tensor than the argument that it should
    have changed and returned, both are held against the argument."""
    cpu = dict(expected.cpu.outputs)
    extra = [name for name in run.live if name not in cpu]
    changed = [name for name in cpu if not name[0].isdigit()]
    cpu.update(zip(extra, (cpu[name] for name in changed), strict=False))
    return cpu


def _metadata(
    expected: Expected, name: str, live: Tensor, reference: Tensor
) -> Iterator[Detection]:
    loose = loose_strides(expected.schema)
    found = list(metadata(name, live, reference, exact_strides=not loose, promised=None))
    if name in OWN_PRECISION.get(expected.schema.family, frozenset()):
        found = [detection for detection in found if detection.kind != "dtype"]
    if not any(detection.kind == "stride" for detection in found):
        return iter(found)
    promised = _promised_strides(expected, name)
    return metadata(name, live, reference, exact_strides=not loose, promised=promised)


def _promised_strides(expected: Expected, name: str) -> tuple[int, ...] | None:
    """Strides by torch's own shape function; None where it has none for the op."""
    shapes = [tensor.to("meta") for tensor in _on_meta(expected)]
    output = evaluate(expected.schema, expected.call, shapes).outputs.get(name)
    return None if output is None or output.layout != torch.strided else tuple(output.stride())


def _on_meta(expected: Expected) -> list[Tensor]:
    return [
        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
        if t.layout == torch.strided
        else t
        for t in expected.operands.tensors
    ]


def _side_effects(expected: Expected, run: Attempt) -> Iterator[Detection]:
    names = [spec.name for spec in expected.call.inputs]
    written = expected.schema.written
    changed = frozenset(
        place for place, name in enumerate(names) if name.partition("[")[0] in written
    )
    return clobbered(expected.operands, run.storages, names, changed)


def _unwritten_arguments(expected: Expected, run: Attempt) -> Iterator[Detection]:
    """Explains a failure: within tolerance, an argument may well come out as it went in.

    Of a random op it is one, since what was there before may well look random.
    """
    for spec, before in zip(expected.call.inputs, expected.operands.tensors, strict=True):
        name = spec.name
        both = name in run.outputs and name in expected.cpu.outputs
        if both and name.partition("[")[0] in expected.schema.written and before.numel():
            yield from ignored(
                name, run.outputs[name], dense(before), dense(expected.cpu.outputs[name])
            )


def _chances(expected: Expected, run: Attempt, cpu: dict[str, Tensor], found: Judgement) -> None:
    """Random and undefined values: a distribution at most."""
    if expected.standard.kind != "random":
        return
    outputs = {name: run.outputs[name] for name in cpu if name in run.outputs}
    named = zip(expected.call.inputs, expected.operands.tensors, strict=True)
    tensors = {spec.name: tensor for spec, tensor in named}
    faults = distribution_faults(Sample(expected.schema, expected.call, tensors, outputs))
    for fault in faults or ():
        found.detections.append(Detection(kind="distribution", where="0", message=fault))


def _values(expected: Expected, run: Attempt, cpu: dict[str, Tensor], found: Judgement) -> None:
    pairs = {
        name: (run.outputs[name], dense(reference))
        for name, reference in cpu.items()
        if name in run.outputs and run.outputs[name].shape == reference.shape
    }
    if all(same_bits(ours, theirs) for ours, theirs in pairs.values()):
        kind = expected.standard.kind
        found.outputs.extend(
            OutputResult(name=name, passed=True, standard=kind, elements=ours.numel())
            for name, (ours, _) in pairs.items()
        )
        return
    if _through_invariants(expected, pairs, found):
        return
    for name, (ours, theirs) in pairs.items():
        _value(expected, name, ours, theirs, found)


def _through_invariants(
    expected: Expected, pairs: dict[str, tuple[Tensor, Tensor]], found: Judgement
) -> bool:
    """Factorisations are compared by what they factor."""
    family, given = expected.schema.family, expected.call.attributes
    try:
        mine = {name: pair[0].to(pair[1].dtype) for name, pair in pairs.items()}
        ours = invariants(family, mine, given)
    except RuntimeError:
        return False  # no factors at all: held against the CPU's, they fail as they are
    theirs = invariants(family, {name: pair[1] for name, pair in pairs.items()}, given)
    if ours is None or theirs is None:
        return False
    raised = expected.raised
    right = None
    if raised is not None and set(pairs) <= set(raised.outputs):
        right = invariants(family, {name: raised.outputs[name] for name in pairs}, given)
    dtype = next((pair[1].dtype for pair in pairs.values() if pair[1].is_floating_point()), None)
    for name, value in ours.items():
        rounded = _as(dtype or torch.float32, theirs[name])
        given_back = _as(dtype or torch.float32, value)
        wide = None if right is None else right[name]
        add(found, compare(name, given_back, rounded, wide, LINALG), given_back, rounded)
    return True


def _as(dtype: torch.dtype, value: Tensor) -> Tensor:
    return value.to(dtype.to_complex() if value.is_complex() else dtype.to_real())


def _value(expected: Expected, name: str, ours: Tensor, theirs: Tensor, found: Judgement) -> None:
    if ours.dtype != theirs.dtype:
        ours = ours.to(theirs.dtype)  # the dtype has its own detection
    if expected.standard.kind == "exact" or not (theirs.is_floating_point() or theirs.is_complex()):
        comparison = compare_exactly(name, ours, theirs)
        if not comparison.result.passed:
            if _excused(expected, name, ours, theirs):
                return
            comparison = compare_exactly(name, ours, _either(expected, name, ours, theirs))
        add(found, comparison, ours, theirs)
        return
    raised = expected.raised.outputs.get(name) if expected.raised is not None else None
    add(found, compared(expected, name, ours, theirs, raised, expected.standard), ours, theirs)


def compared(
    expected: Expected,
    name: str,
    ours: Tensor,
    theirs: Tensor,
    raised: Tensor | None,
    standard: Standard,
) -> Comparison:
    """One floating output by the raised-reference rule."""
    right = None
    if raised is not None and raised.shape == theirs.shape and raised.dtype != theirs.dtype:
        right = dense(raised).to(torch.complex128 if theirs.is_complex() else torch.float64)
    context = Context(
        moved=partial(expected.moved, name) if right is not None else lambda: None,
        magnitude=lambda: expected.magnitude,
        dtype=expected.cpu.outputs.get(name, theirs).dtype,
        spreads=standard.kind not in _LOCAL and expected.adversarial,
        terms=terms(expected.call, theirs.numel()),
    )
    return compare(name, ours, theirs, right, standard, context)


def _either(expected: Expected, name: str, ours: Tensor, theirs: Tensor) -> Tensor:
    """The CPU's result; where the CPU has several for one element, the one that the device gives.

    Only of adversarial values: on others the answers are one.
    """
    if expected.adversarial:
        for other in answers(expected.schema, expected.call, expected.operands):
            if name in other and other[name].shape == theirs.shape:
                answer = dense(other[name]).to(theirs.dtype)
                theirs = torch.where(same_elements(ours, answer), answer, theirs)
    return theirs


def _excused(expected: Expected, name: str, ours: Tensor, theirs: Tensor) -> bool:
    if off_by_one(expected.schema):
        return int((ours.long() - theirs.long()).abs().max()) <= 1
    if not expected.operands.tensors or theirs.is_floating_point() or theirs.is_complex():
        return False
    source = expected.operands.tensors[0]
    return selects_the_same(
        expected.schema.family, expected.call, name, dense(source), ours, theirs
    )


def add(found: Judgement, comparison: Comparison, ours: Tensor, theirs: Tensor) -> None:
    """Keeps a comparison, with what detectors make of it."""
    found.outputs.append(comparison.result)
    if comparison.result.passed:
        return
    where = comparison.result.name
    for kind, count in comparison.faults:
        message = f"{count} of {ours.numel()} elements"
        found.detections.append(Detection(kind=kind, where=where, message=message))  # type: ignore[arg-type]
    if comparison.failing is not None and comparison.result.count:
        found.detections.extend(failure_shapes(where, ours, theirs, comparison.failing))
    elif not comparison.result.count:
        found.detections.append(_spread(comparison.result))


def _spread(result: OutputResult) -> Detection:
    message = (
        f"no single element is out of tolerance, but all together are: gain {result.bias:+.2%}, "
        f"root mean square error {result.rmse_factor} times what is allowed"
    )
    return Detection(kind="bias", where=result.name, message=message)
