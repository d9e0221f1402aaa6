"""The reference of one case, computed as far as it is asked for."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from scanner.probe.rebuild import Operands, dtype_of, over_storages
from scanner.probe.reference import Results, evaluate, lifted, raise_operands
from scanner.probe.schema import Schema
from scanner.probe.standards import Standard, private_outputs, unit
from scanner.records import OpCall

__all__ = ["Expected", "copied", "dense", "flushed", "perturbed", "same_bits", "same_elements"]

_PERTURBATIONS = 2


class Expected:
    """What one configuration with given operands should give; the operands are never changed.

    `adversarial` operands hold infinities and NaN that no step would.
    """

    def __init__(
        self,
        schema: Schema,
        call: OpCall,
        operands: Operands,
        standard: Standard,
        *,
        widest: int,
        adversarial: bool = False,
    ) -> None:
        self.schema = schema
        self.call = call
        self.operands = operands
        self.standard = standard
        self.adversarial = adversarial
        self.refused: Exception | None = None
        """What the CPU raises in the configuration's own dtype; known once `cpu` is."""
        self._widest = widest
        self._moved: dict[str, Tensor] | None = None

    @cached_property
    def cpu(self) -> Results:
        """The CPU's results in the configuration's dtype.

        Where the CPU has no kernel for that dtype, the raised results rounded to it.
        """
        operands = copied(self.operands) if self.schema.written else self.operands
        results = evaluate(self.schema, self.call, operands.tensors)
        self.refused = results.error
        if results.error is None or not self.standard.compares_values:
            return results
        raised = self.raised
        return results if raised is None else Results(self._narrowed(raised.outputs))

    @cached_property
    def raised(self) -> Results | None:
        """Results in double precision, or None when the op cannot be raised or is exact."""
        if self.standard.kind == "exact" and self._runs_on_cpu:
            return None
        wide = self.wide
        if wide is None:
            return None
        results = evaluate(self.schema, lifted(self.schema, self.call), wide.tensors, raised=True)
        return None if results.error is not None else results

    @property
    def wide(self) -> Operands | None:
        """Fresh operands in double precision; None where they cannot be, or are too large."""
        if sum(storage.nbytes for storage in self.operands.storages) > self._widest // 2:
            return None
        return raise_operands(self.operands)

    @cached_property
    def magnitude(self) -> float:
        """The largest finite number among the floating inputs; one without any."""
        floating = (t for t in self.operands.tensors if t.is_floating_point() or t.is_complex())
        sizes = (dense(t).abs().nan_to_num(0, 0, 0) for t in floating if t.numel())
        return max((float(size.max()) for size in sizes), default=1.0)

    @property
    def reproducible(self) -> bool:
        """Whether the CPU gives the same bits again: some kernels leave results uninitialised."""
        if not self.standard.compares_values:
            return True
        again = evaluate(self.schema, self.call, copied(self.operands).tensors)
        first, hidden = self.cpu.outputs, private_outputs(self.schema, self.call)
        return again.error is not None or all(
            name in first and same_bits(dense(first[name]), dense(value))
            for name, value in again.outputs.items()
            if name not in hidden
        )

    @property
    def _runs_on_cpu(self) -> bool:
        return "cpu" in self.__dict__

    def moved(self, name: str) -> Tensor | None:
        """How far an output moves when the inputs move by a rounding error; None when unknown."""
        raised = self.raised
        if raised is None:
            return None
        if self._moved is None:
            self._moved = {}
            for number in range(_PERTURBATIONS):
                self._move(raised, number)
        return self._moved.get(name)

    def _move(self, raised: Results, number: int) -> None:
        wide = raise_operands(self.operands)
        assert wide is not None
        assert self._moved is not None
        shaken = perturbed(self.operands, wide, number)
        results = evaluate(self.schema, lifted(self.schema, self.call), shaken.tensors, raised=True)
        for name, value in results.outputs.items():
            base = raised.outputs.get(name)
            if base is None or base.shape != value.shape:
                continue
            move = (dense(value) - dense(base)).abs().to(torch.float64)
            before = self._moved.get(name)
            self._moved[name] = move if before is None else torch.maximum(move, before)

    def _narrowed(self, outputs: dict[str, Tensor]) -> dict[str, Tensor]:
        dtypes = {spec.name: spec.dtype for spec in self.call.outputs}
        floating = [
            spec.dtype for spec in self.call.inputs if "float" in spec.dtype or "comp" in spec.dtype
        ]
        default = floating[0] if floating else "float32"
        return {
            name: value.to(dtype_of(dtypes.get(name, default)))
            if value.is_floating_point() or value.is_complex()
            else value
            for name, value in outputs.items()
        }


def perturbed(operands: Operands, wide: Operands, number: int) -> Operands:
    """Raised operands, each floating value moved by up to one unit of the original dtype.

    The halves of a unit are taken for 16-bit dtypes, whose units are coarse.
    """
    storages = []
    for old, new in zip(operands.storages, wide.storages, strict=True):
        if not (new.is_floating_point() or new.is_complex()) or not new.numel():
            storages.append(new)
            continue
        generator = torch.Generator().manual_seed(number * 7919 + new.numel())
        sign = torch.randint(0, 2, new.shape, generator=generator, dtype=torch.float64) * 2 - 1
        step = unit(old.dtype) * (0.5 if torch.finfo(old.dtype).bits <= 16 else 1.0)
        # Whole numbers are left alone: they are often orders, exponents or counts.
        whole = (new.real if new.is_complex() else new).frac() == 0
        storages.append(torch.where(whole, new, new * (1 + step * sign)))
    return over_storages(wide, storages)


def copied(operands: Operands) -> Operands:
    """The same tensors over copies of their storages."""
    copies = over_storages(operands, [storage.clone() for storage in operands.storages])
    tensors = [
        tensor.clone() if group is None else tensor
        for tensor, group in zip(copies.tensors, copies.groups, strict=True)
    ]
    return Operands(tuple(tensors), copies.storages, copies.groups)


def flushed(operands: Operands) -> Operands | None:
    """The same operands with subnormal numbers as zeros; None when there are none."""
    storages = []
    for storage in operands.storages:
        floating = storage.is_floating_point()
        tiny = torch.finfo(storage.dtype).smallest_normal if floating else 0.0
        storages.append(storage.masked_fill(storage.abs() < tiny, 0.0) if floating else storage)
    pairs = zip(storages, operands.storages, strict=True)
    if all(new is old or same_bits(new, old) for new, old in pairs):
        return None
    return over_storages(operands, [storage.clone() for storage in storages])


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Equal dtype, shape and values; any NaN equals any other, and zeros of either sign."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if torch.equal(left, right):
        return True
    if not (left.is_floating_point() or left.is_complex()):
        return False
    return bool(same_elements(left, right).all())


def same_elements(left: Tensor, right: Tensor) -> Tensor:
    """Where values are equal; any NaN equals any other, and zeros of either sign."""
    same = left == right
    if not (left.is_floating_point() or left.is_complex()):
        return same
    return same | (left.isnan() & right.isnan())


def dense(tensor: Tensor) -> Tensor:
    """A strided tensor with conjugation and negation carried out.

    Half-precision complex numbers come back wider, since torch cannot even compare them.
    """
    strided = tensor if tensor.layout == torch.strided else tensor.to_dense()
    plain = strided.resolve_conj().resolve_neg()
    return plain.to(torch.complex64) if plain.dtype == torch.complex32 else plain
