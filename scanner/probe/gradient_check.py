"""Judges the gradient of one configuration by the same rule as its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from scanner.backends.interface import Device
from scanner.probe.attempt import downloaded, invoke, on_device
from scanner.probe.compare import Comparison, Context, compare
from scanner.probe.detectors import metadata
from scanner.probe.draws import seed_of
from scanner.probe.expected import Expected, copied, dense, perturbed, same_bits
from scanner.probe.gradients import (
    NotDifferentiable,
    Product,
    differentiable,
    underivable,
    vjp,
)
from scanner.probe.judge import Judgement, add
from scanner.probe.outcome import Detection, GradientResult, OutputResult
from scanner.probe.rebuild import Operands, bind
from scanner.probe.reference import default_dtype, lifted, quiet, reference_of
from scanner.probe.standards import gradient_standard
from scanner.probe.terms import terms
from scanner.probe.ties import evened
from scanner.probe.verdict import explain, failure_of, raised_status

__all__ = ["check_gradient"]


def check_gradient(
    device: Device, expected: Expected
) -> tuple[GradientResult | None, list[Detection]]:
    """The vector-Jacobian product on the device against the CPU's; None when there is none."""
    if not differentiable(expected.schema, expected.call):
        return None, []
    reference = _Reference(expected)
    try:
        cpu = reference.cpu
    except Exception as error:
        if underivable(error):
            return None, []
        reason = f"the CPU has none to hold it against: {explain(error)}"
        return GradientResult(status="skipped", reason=reason), []
    if not cpu.gradients:
        return None, []
    try:
        gradients = _on_device(device, expected, cpu)
    except Exception as error:
        status, reason, _ = raised_status(error)
        return GradientResult(status=status, reason=f"{reason}: {explain(error)}"), []
    found = Judgement()
    for name in cpu.gradients:
        _compare(device, reference, name, gradients.get(name), found)
    status, reason = ("native", "") if found.passed else failure_of(found)
    result = GradientResult(status=status, reason=reason, outputs=tuple(found.outputs))
    return result, found.detections


class _Reference:
    """The CPU's products, computed as far as they are asked for."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._moved: dict[str, Tensor] | None = None
        self.standard = gradient_standard(expected.standard)

    @cached_property
    def cpu(self) -> Product:
        generator = torch.Generator().manual_seed(seed_of(self._expected.call, 1))

        def cotangent(_: str, output: Tensor) -> Tensor:
            wide = torch.complex64 if output.is_complex() else torch.float32
            vector = torch.randn(output.shape, generator=generator, dtype=wide)
            return vector.to(output.dtype)

        return self._product(copied(self._expected.operands), cotangent, raised=False)

    @cached_property
    def raised(self) -> Product | None:
        wide = self._expected.wide
        return None if wide is None else self._wide(wide)

    @property
    def magnitude(self) -> float:
        """The largest finite number among inputs and vectors."""
        vectors = (float(v.abs().max()) for v in self.cpu.cotangents.values() if v.numel())
        return max(self._expected.magnitude, *vectors, 1.0)

    def held(self, name: str, ours: Tensor, theirs: Tensor) -> Comparison:
        """The device's gradient against the CPU's; among equal values, what all of them receive."""
        comparison = self._compared(name, ours, theirs, lambda gradient: gradient)
        spread = None if comparison.result.passed else self._ties(name)
        if spread is None:
            return comparison
        again = self._compared(name, ours, theirs, spread)
        return again if again.result.passed else comparison

    def _compared(
        self, name: str, ours: Tensor, theirs: Tensor, change: Callable[[Tensor], Tensor]
    ) -> Comparison:
        right = None if self.raised is None else self.raised.gradients.get(name)
        if right is not None and (right.dtype == theirs.dtype or right.shape != theirs.shape):
            right = None
        return compare(
            f"grad of {name}",
            change(ours),
            change(theirs),
            None if right is None else change(dense(right)),
            self.standard,
            Context(
                moved=(lambda: None) if right is None else partial(self.moved, name),
                magnitude=lambda: self.magnitude,
                terms=terms(self._expected.call, theirs.numel()),
            ),
        )

    def _ties(self, name: str) -> Callable[[Tensor], Tensor] | None:
        call, operands = self._expected.call, self._expected.operands
        place = next(place for place, spec in enumerate(call.inputs) if spec.name == name)
        return evened(self._expected.schema.family, call, name, dense(operands.tensors[place]))

    def moved(self, name: str) -> Tensor | None:
        """How far a gradient moves when the inputs move by a rounding error."""
        if self._moved is None:
            self._moved = {}
            for number in range(2):
                self._move(number)
        return self._moved.get(name)

    def _move(self, number: int) -> None:
        wide = self._expected.wide
        assert wide is not None
        assert self._moved is not None
        assert self.raised is not None
        shaken = self._wide(perturbed(self._expected.operands, wide, number))
        for name, base in self.raised.gradients.items():
            if shaken is not None and name in shaken.gradients:
                move = (dense(shaken.gradients[name]) - dense(base)).abs()
                self._moved[name] = torch.maximum(move, self._moved.get(name, move))

    def _wide(self, operands: Operands) -> Product | None:
        vectors = self.cpu.cotangents

        def cotangent(name: str, output: Tensor) -> Tensor | None:
            vector = vectors.get(name)
            return None if vector is None else vector.to(output.dtype)

        try:
            return self._product(operands, cotangent, raised=True)
        except Exception:
            return None

    def _product(
        self,
        operands: Operands,
        cotangent: Callable[[str, Tensor], Tensor | None],
        *,
        raised: bool,
    ) -> Product:
        schema, call = self._expected.schema, self._expected.call
        if raised:
            call = lifted(schema, call)

        def run(tensors: Sequence[Any]) -> Any:
            bound = bind(schema, call, tensors, "cpu")
            return reference_of(schema)(*bound.args, **bound.kwargs)

        with quiet(), default_dtype(raised):
            return vjp(schema, call, operands.tensors, run, cotangent)


def _on_device(device: Device, expected: Expected, cpu: Product) -> dict[str, Tensor]:
    """Gradients as the device holds them."""
    schema, call = expected.schema, expected.call
    tensors, _ = on_device(device, call, expected.operands)

    def cotangent(name: str, _: Tensor) -> Tensor | None:
        vector = cpu.cotangents.get(name)
        return None if vector is None else device.upload(vector)

    try:
        product = vjp(
            schema, call, tensors, lambda given: invoke(device, schema, call, given), cotangent
        )
    except NotDifferentiable:
        return {}
    device.synchronize()
    return product.gradients


def _compare(
    device: Device, reference: _Reference, name: str, gradient: Tensor | None, found: Judgement
) -> None:
    where, theirs = f"grad of {name}", dense(reference.cpu.gradients[name])
    if gradient is None:
        message = "the CPU gives this gradient, the device does not"
        found.detections.append(Detection(kind="missing-output", where=where, message=message))
        return
    ours = downloaded(device, gradient)
    # Strides of gradients are promised by nobody.
    found.detections.extend(metadata(where, ours, theirs, exact_strides=False, promised=None))
    if ours.shape != theirs.shape:
        return
    if same_bits(ours, theirs):
        kind, elements = reference.standard.kind, ours.numel()
        found.outputs.append(
            OutputResult(name=where, passed=True, standard=kind, elements=elements)
        )
        return
    comparison = reference.held(name, ours.to(theirs.dtype), theirs)
    add(found, comparison, ours, theirs)
