"""The figures of a comparison: how many elements fail, where, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from scanner.probe.outcome import OutputResult, Worst, number

__all__ = ["Measured", "figures"]


@dataclass
class Measured:
    """One output with its errors, all in double precision but the two results."""

    device: Tensor
    reference: Tensor
    cpu: Tensor
    error: Tensor
    """|device − reference|, zero where categories decide instead."""
    excess: Tensor
    """Error ÷ allowance."""
    own: Tensor | None = None
    """|cpu − reference|."""
    rmse_factor: float = 0.0
    bias: float = 0.0


def figures(
    name: str, standard: str, measured: Measured, failing: Tensor, *, passed: bool
) -> OutputResult:
    """The record of one output; what only explains a failure is left out of a pass."""
    count = 0 if passed else int(failing.sum())
    elements = measured.device.numel()
    worst = float(measured.error.max())
    largest = float(measured.reference.abs().nan_to_num(0, 0, 0).max())
    return OutputResult(
        name=name,
        passed=passed,
        standard=standard,
        raised=measured.own is not None,
        count=count,
        elements=elements,
        share=count / max(elements, 1),
        error_factor=number(float(measured.excess.nan_to_num(math.inf, math.inf).max())),
        rmse_factor=number(measured.rmse_factor),
        bias=measured.bias,
        max_absolute=number(worst),
        max_relative=0.0 if passed else number(_relative(measured)),
        cpu_absolute=number(float(measured.own.max()) if measured.own is not None else 0.0),
        min_tolerance=number(worst / largest if largest else math.inf if worst else 0.0),
        worst=None if passed else _worst(measured, failing),
    )


def _relative(measured: Measured) -> float:
    return float((measured.error / measured.reference.abs()).nan_to_num(0, 0, 0).max())


def _worst(measured: Measured, failing: Tensor) -> Worst:
    """The failing element with the largest excess, then error; the first of equals."""
    device = measured.device
    key = measured.excess.nan_to_num(0.0, 0.0) + measured.error.nan_to_num(0.0, 0.0)
    chosen = key.masked_fill(~failing, -1.0) if bool(failing.any()) else key
    place = int(chosen.reshape(-1).argmax())
    index = _index(place, tuple(device.shape))
    return Worst(
        index=index,
        device=number(device[index].item()),
        reference=number(measured.reference[index].item()),
        cpu=number(measured.cpu[index].item()),
    )


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        place, last = divmod(place, size)
        index.append(last)
    return tuple(reversed(index))
