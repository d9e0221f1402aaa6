"""The raised-reference rule: a device may err a few times as much as the CPU itself does.

An element passes when its error against the double-precision reference is at most

    factor · max(e, ē) + (relative · |reference| + scale · S) · ε

with e the CPU's own error of that element, ē the root mean square of the CPU's errors, S the root
mean square of the reference, and ε the dtype's epsilon. On top, the root mean square of all errors
has an allowance of its own, and the gain of the whole output is tested: in bfloat16 one per cent is
little more than one unit in the last place, which only many elements together can tell from noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from scanner.probe.finite import Category, categories, category_faults
from scanner.probe.gain import gain_error
from scanner.probe.outcome import OutputResult, Worst, number
from scanner.probe.standards import Allowance, Standard, unit

__all__ = ["Comparison", "Conditioning", "compare", "compare_exactly"]

Conditioning = Callable[[], "Tensor | None"]
"""How much the reference moves when its inputs move by a rounding error; computed when needed."""

_MOVES = 2.0
"""Rounding errors of the inputs that an algorithm may be worth."""
_LOST = 0.25
"""No ill condition excuses more than this share of a result: it would excuse a lost one."""
_NONSENSE = 0.5
"""A CPU whose errors are this large against the result computes something else."""
_TINY_STEPS = 4
"""Subnormal steps that are always allowed: below them a dtype holds no digits."""


@dataclass(frozen=True)
class Comparison:
    """Result of comparing one output, with what detectors need to say more."""

    result: OutputResult
    failing: Tensor | None = None
    """Mask of failing elements."""
    faults: tuple[tuple[str, int], ...] = ()
    """Detector and number of elements, for non-finite values that appear or vanish."""


def compare_exactly(name: str, device: Tensor, cpu: Tensor) -> Comparison:
    """Every element must be equal; NaN equals NaN, and zeros are equal whatever their sign."""
    same = device == cpu
    if device.is_floating_point() or device.is_complex():
        same = same | (device.isnan() & cpu.isnan())
    failing = ~same
    count = int(failing.sum())
    result = OutputResult(
        name=name, passed=not count, standard="exact", raised=False, elements=device.numel()
    )
    if not count:
        return Comparison(result)
    error = (_wide(device) - _wide(cpu)).abs().nan_to_num(nan=float("inf"))
    error = torch.where(failing, error, 0.0)
    return _failed(result, _Parts(device, _wide(cpu), cpu, error, error, None), failing)


@dataclass(frozen=True)
class _Rule:
    """A standard in one dtype."""

    standard: Standard
    allowance: Allowance
    dtype: torch.dtype


@dataclass
class _Parts:
    device: Tensor
    reference: Tensor
    cpu: Tensor
    error: Tensor
    """|device − reference|, zero where categories decide instead."""
    excess: Tensor
    """Error ÷ allowance."""
    cpu_error: Tensor | None


def compare(
    name: str,
    device: Tensor,
    cpu: Tensor,
    raised: Tensor | None,
    standard: Standard,
    conditioning: Conditioning | None = None,
    dtype: torch.dtype | None = None,
) -> Comparison:
    """Compares one floating output; all tensors are dense, on the CPU and of one shape.

    `raised` is None when no wider reference exists: the CPU then counts as right, and the
    standard's floors alone decide. `dtype` is what was computed in, where the tensors are in a
    wider one.
    """
    rule = _Rule(standard, standard.allowance(dtype or cpu.dtype), dtype or cpu.dtype)
    if not device.numel():
        return Comparison(OutputResult(name=name, passed=True, standard=standard.kind))
    kinds = categories(device, cpu, raised)
    judged = _judge(device, cpu, raised, rule, kinds)
    comparison = _concluded(name, judged, standard, kinds, raised is not None)
    if comparison.result.passed or conditioning is None or kinds.faulty:
        return comparison
    moved = conditioning()
    if moved is None:
        return comparison
    judged = _judge(device, cpu, raised, rule, kinds, moved)
    return _concluded(name, judged, standard, kinds, raised is not None)


@dataclass
class _Judged:
    parts: _Parts
    rmse_factor: float
    bias: float
    biased: bool


def _judge(
    device: Tensor,
    cpu: Tensor,
    raised: Tensor | None,
    rule: _Rule,
    kinds: Category,
    moved: Tensor | None = None,
) -> _Judged:
    reference = kinds.reference(cpu, raised)
    error = kinds.masked((_wide(device) - reference).abs())
    cpu_error = kinds.masked((_wide(cpu) - reference).abs()) if raised is not None else None
    magnitude = kinds.masked(reference.abs())
    scale = _rms(magnitude)
    if cpu_error is not None and _rms(cpu_error) > _NONSENSE * scale:
        cpu_error = None  # the CPU's kernel is wrong itself, and so no measure
    bound = _bound(magnitude, scale, cpu_error, rule)
    extra = 0.0
    if moved is not None:
        excuse = _excuse(kinds.masked(moved), magnitude, scale, rule)
        bound, extra = bound + excuse, _rms(excuse)
    rmse = _rms(error)
    allowed = rule.allowance.rmse * unit(rule.dtype) * scale + extra + _steps(rule.dtype)
    allowed += rule.standard.factor * _rms(cpu_error) if cpu_error is not None else 0.0
    gain = gain_error(_wide(device), reference, _wide(cpu), kinds.finite)
    parts = _Parts(device, reference, cpu, error, error / bound, cpu_error)
    return _Judged(parts, rmse / allowed, gain.bias, gain.significant)


def _excuse(moved: Tensor, magnitude: Tensor, scale: float, rule: _Rule) -> Tensor:
    """What an ill-conditioned result may be off by: a few times what a rounding of its inputs does.

    Never so much that a lost result could pass; of a stepped op, a whole step, but only where the
    inputs are at one.
    """
    if rule.standard.kind == "stepped":
        return _MOVES * moved
    excuse = _MOVES * moved.clamp(min=_rms(moved))
    return torch.minimum(excuse, _LOST * magnitude.clamp(min=scale))


def _bound(magnitude: Tensor, scale: float, cpu_error: Tensor | None, rule: _Rule) -> Tensor:
    allowance = rule.allowance
    floor = (allowance.relative * magnitude + allowance.scale * scale) * unit(rule.dtype)
    floor = floor + _steps(rule.dtype)
    if cpu_error is None:
        return floor
    return floor + rule.standard.factor * cpu_error.clamp(min=_rms(cpu_error))


def _concluded(
    name: str, judged: _Judged, standard: Standard, kinds: Category, raised: bool
) -> Comparison:
    parts = judged.parts
    failing = (parts.excess > 1) | kinds.faults
    count = int(failing.sum())
    passed = not count and judged.rmse_factor <= 1 and not judged.biased
    result = OutputResult(
        name=name,
        passed=passed,
        standard=standard.kind,
        raised=raised,
        elements=parts.device.numel(),
        rmse_factor=number(judged.rmse_factor),
        bias=judged.bias,
    )
    return _failed(result, parts, failing, tuple(category_faults(kinds)))


def _failed(
    result: OutputResult,
    parts: _Parts,
    failing: Tensor,
    faults: tuple[tuple[str, int], ...] = (),
) -> Comparison:
    """Adds the statistics; they are the same whether the output passes or fails."""
    excess = torch.where(failing & (parts.excess <= 1), torch.inf, parts.excess)
    place = int(excess.reshape(-1).argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), parts.device.shape))
    count = int(failing.sum())
    largest = float(_wide(parts.reference).abs().nan_to_num(0, 0, 0).max())
    worst = float(parts.error.max())
    relative = parts.error / parts.reference.abs()
    statistics = OutputResult(
        name=result.name,
        passed=result.passed,
        standard=result.standard,
        raised=result.raised,
        count=count,
        elements=result.elements,
        share=count / max(result.elements, 1),
        error_factor=number(float(excess.max())),
        rmse_factor=result.rmse_factor,
        bias=result.bias,
        max_absolute=number(worst),
        max_relative=number(float(relative.nan_to_num(0, 0, 0).max())),
        cpu_absolute=number(float(parts.cpu_error.max()) if parts.cpu_error is not None else 0.0),
        min_tolerance=number(worst / largest if largest else (float("inf") if worst else 0.0)),
        worst=Worst(
            index=index,
            device=number(parts.device[index].item()),
            reference=number(parts.reference[index].item()),
            cpu=number(parts.cpu[index].item()),
        ),
    )
    return Comparison(statistics, failing, faults)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


def _steps(dtype: torch.dtype) -> float:
    info = torch.finfo(dtype)
    return _TINY_STEPS * info.smallest_normal * info.eps
