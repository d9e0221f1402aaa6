"""How far results are from a reference, in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scanner.probe.expected import dense
from scanner.probe.outcome import number
from scanner.sim.study.interface import Figures, Worst

__all__ = ["Compared", "figures", "relative"]


@dataclass(frozen=True)
class Compared:
    """One output on both sides, dense and of one shape."""

    name: str
    device: Tensor
    cpu: Tensor
    raised: Tensor | None
    """In double precision, where the op can be raised."""


def figures(outputs: Sequence[Compared], inputs: Mapping[str, Tensor]) -> Figures | None:
    """The figures over all outputs; None without an element to compare."""
    parts = [_output(output, inputs) for output in outputs if output.cpu.numel()]
    if not parts:
        return None
    worst = max(parts, key=lambda part: _size(part.max_rel))
    return Figures(
        elements=sum(part.elements for part in parts),
        differs=sum(part.differs for part in parts),
        max_rel=worst.max_rel,
        cpu_max_rel=max((part.cpu_max_rel for part in parts), key=_size),
        nan_differs=sum(part.nan_differs for part in parts),
        inf_differs=sum(part.inf_differs for part in parts),
        worst=worst.worst or next((part.worst for part in parts if part.worst), None),
    )


def relative(value: Tensor, reference: Tensor, dtype: torch.dtype) -> Tensor:
    """|value − reference| ÷ |reference| in double precision.

    Zero where the reference is zero or subnormal in `dtype` (devices may take those for zero), and
    where either side is not finite: those are counted, not measured.
    """
    ours, theirs = _wide(value), _wide(reference)
    size = theirs.abs()
    floating = dtype.is_floating_point or dtype.is_complex
    smallest = torch.finfo(dtype).smallest_normal if floating else 0.5
    counts = torch.isfinite(ours) & torch.isfinite(theirs) & (size >= smallest)
    return torch.where(counts, (ours - theirs).abs() / size, 0.0)


def _output(output: Compared, inputs: Mapping[str, Tensor]) -> Figures:
    dtype = output.cpu.dtype
    reference = output.cpu if output.raised is None else output.raised
    rounded = reference.to(dtype)
    errors = relative(output.device, reference, dtype)
    nan = output.device.isnan() != rounded.isnan()
    infinite = (output.device.isinf() | rounded.isinf()) & (output.device != rounded) & ~nan
    same = (output.device == rounded) | (output.device.isnan() & rounded.isnan())
    wrong = nan | infinite
    place = int(errors.reshape(-1).argmax())
    if not float(errors.reshape(-1)[place]) and bool(wrong.any()):
        place = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return Figures(
        elements=output.cpu.numel(),
        differs=int((~same).sum()),
        max_rel=number(float(errors.max())),
        cpu_max_rel=number(float(relative(output.cpu, reference, dtype).max())),
        nan_differs=int(nan.sum()),
        inf_differs=int(infinite.sum()),
        worst=None if bool(same.all()) else _worst(output, reference, place, inputs),
    )


def _worst(output: Compared, reference: Tensor, place: int, inputs: Mapping[str, Tensor]) -> Worst:
    index = tuple(int(at) for at in torch.unravel_index(torch.tensor(place), output.cpu.shape))
    given = {
        name: number(dense(tensor)[index].item())
        for name, tensor in inputs.items()
        if tensor.shape == output.cpu.shape
    }
    only: Any = next(iter(given.values())) if len(given) == 1 else given
    return Worst(
        output=output.name,
        index=index,
        input=only or None if isinstance(only, dict) else only,
        device=number(output.device[index].item()),
        reference=number(reference[index].item()),
    )


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _size(value: float | str) -> float:
    return float("inf") if isinstance(value, str) else value
