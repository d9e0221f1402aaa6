"""The raised-reference rule: a device may err a few times as much as the CPU itself does.

An element passes when its error against the double-precision reference is at most

    factor · max(e, ē) + (relative · |reference| + max(scale, 6·√K) · S) · ε

with e the CPU's own error of that element, ē the root mean square of the CPU's errors, S the root
mean square of the reference, ε the dtype's epsilon, and K the number of terms of a sum.

On top, the root mean square of all errors has an allowance of its own, and the gain of the whole
output is tested: in bfloat16 one per cent is little more than one unit in the last place, which
only many elements together can tell from noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from scanner.probe.expected import same_elements
from scanner.probe.figures import Measured, figures
from scanner.probe.finite import Categories, categories
from scanner.probe.gain import gain_error
from scanner.probe.outcome import OutputResult
from scanner.probe.standards import Standard, unit

__all__ = ["Comparison", "Context", "compare", "compare_exactly"]

_MOVES = 2.0
"""Rounding errors of the inputs that an algorithm may be worth."""
_LOST = 0.25
"""No ill condition excuses more than this share of a result: it would excuse a lost one."""
_NONSENSE = 0.5
"""A CPU whose errors are this large against the result computes something else, unless the result
is what is left of inputs that cancel."""
_CANCELLED = 1000.0
"""Units of the largest input that the CPU's errors then have at most."""
_PEAK = 6.0
"""How far the largest of a billion errors lies above their root mean square."""
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
    """Every element must be equal; NaN equals NaN, and zeros are equal whatever their sign.

    Infinities and NaN that appear or vanish are told apart from other differences.
    """
    failing = ~same_elements(device, cpu)
    if not bool(failing.any()):
        elements = device.numel()
        result = OutputResult(
            name=name, passed=True, standard="exact", raised=False, elements=elements
        )
        return Comparison(result)
    wide = _wide(cpu)
    error = (_wide(device) - wide).abs().nan_to_num(nan=torch.inf)
    error = torch.where(failing, error, 0.0)
    measured = Measured(device, wide, cpu, error, error * torch.inf)
    result = figures(name, "exact", measured, failing, passed=False)
    floating = cpu.is_floating_point() or cpu.is_complex()
    kinds = categories(device, cpu, None) if floating else Categories()
    return Comparison(result, failing, tuple(kinds.faults()))


@dataclass(frozen=True)
class Context:
    """What is known of a comparison beside the results; the functions are called when needed."""

    moved: Callable[[], Tensor | None] = lambda: None
    """How far the reference moves when its inputs move by a rounding error; None when unknown."""
    magnitude: Callable[[], float] = lambda: 1.0
    """The largest finite input."""
    dtype: torch.dtype | None = None
    """What was computed in, where the tensors are in a wider dtype."""
    spreads: bool = False
    """See `categories`."""
    terms: float = 1.0
    """How many numbers each element is the sum of."""


_PLAIN = Context()


@dataclass(frozen=True)
class _Case:
    """One output to be compared."""

    device: Tensor
    cpu: Tensor
    raised: Tensor | None
    standard: Standard
    dtype: torch.dtype
    kinds: Categories
    context: Context


def compare(
    name: str,
    device: Tensor,
    cpu: Tensor,
    raised: Tensor | None,
    standard: Standard,
    context: Context = _PLAIN,
) -> Comparison:
    """Compares one floating output; all tensors are dense, on the CPU and of one shape.

    `raised` is None when no wider reference exists: the CPU then counts as right, and the
    standard's floors alone decide.
    """
    if not device.numel():
        return Comparison(OutputResult(name=name, passed=True, standard=standard.kind))
    kinds = categories(device, cpu, raised, spreads=context.spreads)
    case = _Case(device, cpu, raised, standard, context.dtype or cpu.dtype, kinds, context)
    comparison = _judged(name, case, None)
    if comparison.result.passed or kinds.faulty:
        return comparison
    moved = context.moved()
    return comparison if moved is None else _judged(name, case, moved)


def _judged(name: str, case: _Case, moved: Tensor | None) -> Comparison:
    measured = _measured(case, moved)
    failing = case.kinds.failing(measured.excess > 1)
    gain = gain_error(_wide(case.device), measured.reference, _wide(case.cpu), case.kinds.finite)
    measured.bias = gain.bias
    passed = not bool(failing.any()) and measured.rmse_factor <= 1 and not gain.significant
    result = figures(name, case.standard.kind, measured, failing, passed=passed)
    return Comparison(result, failing, tuple(case.kinds.faults()))


def _measured(case: _Case, moved: Tensor | None) -> Measured:
    masked = case.kinds.masked
    reference = case.kinds.reference(case.cpu, case.raised)
    magnitude = masked(reference.abs())
    error = masked((_wide(case.device) - reference).abs())
    error = error.masked_fill(_excused(case, magnitude), 0.0)
    scale = _rms(magnitude)
    own = masked((_wide(case.cpu) - reference).abs()) if case.raised is not None else None
    bound, allowed = _allowed(case, magnitude, scale, own)
    if moved is not None:
        excuse = _excuse(masked(moved), magnitude, scale, case.standard)
        bound, allowed = bound + excuse, allowed + _rms(excuse)
    measured = Measured(case.device, reference, case.cpu, error, error / bound, own)
    measured.rmse_factor = _rms(error) / allowed
    return measured


def _excused(case: _Case, magnitude: Tensor) -> Tensor:
    """Elements that agree with the CPU to the bit, and subnormal results flushed to zero."""
    tiny = torch.finfo(case.dtype).smallest_normal
    return (case.device == case.cpu) | ((case.device == 0) & (magnitude < tiny))


def _allowed(
    case: _Case, magnitude: Tensor, scale: float, own: Tensor | None
) -> tuple[Tensor, float]:
    """What each element may be off by, and what all may be in the root mean square."""
    allowance, epsilon = case.standard.allowance(case.dtype), unit(case.dtype)
    steps = _TINY_STEPS * torch.finfo(case.dtype).smallest_normal * epsilon
    grown = _grown(case, epsilon)
    floor = max(allowance.scale * epsilon, _PEAK * grown) * scale + steps
    bound = magnitude * (allowance.relative * epsilon) + floor
    allowed = max(allowance.rmse * epsilon, grown) * scale + steps
    mean = _rms(own) if own is not None else 0.0
    if own is None or (mean > _NONSENSE * scale and not _cancelled(case, mean)):
        return bound, allowed  # a CPU kernel that is wrong itself is no measure
    return bound + case.standard.factor * own.clamp(min=mean), allowed + case.standard.factor * mean


def _grown(case: _Case, epsilon: float) -> float:
    """Root mean square of the errors of a sum that is taken in one go, in units of the result's.

    Partial sums of K terms grow as √k, and with them the rounding of each: together ε·√K to ε·√K÷2.
    The CPU adds in blocks and errs less, so that its own error does not tell. Half-precision
    results are summed in float32.
    """
    if case.standard.kind not in {"contraction", "reduction"}:
        return 0.0
    return math.sqrt(case.context.terms) * min(epsilon, unit(torch.float32))


def _cancelled(case: _Case, mean: float) -> bool:
    """Whether errors larger than the result are still small against the inputs."""
    return mean <= _CANCELLED * unit(case.dtype) * case.context.magnitude()


def _excuse(moved: Tensor, magnitude: Tensor, scale: float, standard: Standard) -> Tensor:
    """What an ill-conditioned result may be off by: a few times what a rounding of its inputs does.

    Never so much that a lost result could pass; of a stepped op, a whole step, but only where the
    inputs are at one.
    """
    if standard.kind == "stepped":
        return _MOVES * moved
    typical = _rms(moved)
    limit = _LOST * magnitude.clamp(min=max(scale, typical))  # a result may be nothing but noise
    return torch.minimum(_MOVES * moved.clamp(min=typical), limit)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _rms(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(values)) / math.sqrt(max(values.numel(), 1))
