"""A test for a gain error: values that are, on the whole, too large or too small.

The gain is b = Σ (device − reference)·sign(reference) ÷ Σ |reference|. Rounding noise makes b small
and its standard error s as large as the noise warrants; a systematic error makes b many times s.
With n independent elements of noise up to 3 ULP, |b| exceeds `_critical(n)`·s about once in 10⁷
outputs, while a bias of 1 % in bfloat16 exceeds it from n = 12 on. In wider dtypes single elements
tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["MIN_ELEMENTS", "MIN_GAIN", "Gain", "gain_error"]

MIN_ELEMENTS = 12
"""With fewer (effective, distinct) elements, chance alone can look like a gain."""
MIN_GAIN = 5e-3
"""Smaller gains pass: truncation to bfloat16 is one of 2.8·10⁻³, half a unit on average."""
_FACTOR = 3.0


@dataclass(frozen=True)
class Gain:
    """Result of the test."""

    bias: float
    """b: 0.01 when values are 1 % too large."""
    significant: bool


def gain_error(
    device: Tensor, reference: Tensor, cpu: Tensor, finite: Tensor | None = None
) -> Gain:
    """Tests double-precision values; elements that are not `finite` (None: all) are left out."""
    if reference.is_complex():
        return _complex(device, reference, cpu, finite)
    if finite is not None:
        device, reference, cpu = (_kept(tensor, finite) for tensor in (device, reference, cpu))
    total = float(reference.abs().sum())
    # Of subnormal size every digit is a rounding error.
    if not 1e-30 < total < 1e200:
        return Gain(0.0, False)
    bias = _slope(device, reference, total)
    if abs(bias) < MIN_GAIN or abs(bias) <= _FACTOR * abs(_slope(cpu, reference, total)):
        return Gain(bias, False)
    return Gain(bias, _significant(device, reference, total, bias))


def _kept(values: Tensor, finite: Tensor) -> Tensor:
    return torch.where(finite, values, 0.0).nan_to_num(0.0, 0.0, 0.0)


def _slope(values: Tensor, reference: Tensor, total: float) -> float:
    return float(((values - reference) * reference.sign()).sum()) / total


def _significant(device: Tensor, reference: Tensor, total: float, bias: float) -> bool:
    effective = total**2 / max(float(reference.square().sum()), 1e-300)
    if effective < MIN_ELEMENTS:
        return False
    # Equal values round alike: their errors are one error, seen many times.
    distinct = int(torch.unique(reference[reference != 0].abs()).numel())
    count = min(effective, float(distinct))
    if count < MIN_ELEMENTS:
        return False
    residual = device - (1 + bias) * reference
    spread = float(residual.square().sum()) ** 0.5 / total * (effective / count) ** 0.5
    return bool(abs(bias) > _critical(count) * spread)


def _critical(count: float) -> float:
    """Near the two-sided 10⁻⁷ point of Student's distribution with `count` − 1 degrees."""
    return 5.5 * (1 + 16 / count)


def _complex(device: Tensor, reference: Tensor, cpu: Tensor, finite: Tensor | None) -> Gain:
    ours, right, theirs = (torch.view_as_real(t.resolve_conj()) for t in (device, reference, cpu))
    parts = None if finite is None else finite.unsqueeze(-1).expand(ours.shape)
    return gain_error(ours, right, theirs, parts)
