"""What became of one configuration on a device: records that encode to JSON.

Numbers that JSON has no spelling for (infinities, NaN, complex) are strings as Python prints them.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from scanner.records import Status

__all__ = [
    "CaseResult",
    "Detection",
    "Detector",
    "GradientResult",
    "Number",
    "OutputResult",
    "Worst",
    "number",
]

Number = float | str

Detector = Literal[
    "nan-appears",
    "nan-vanishes",
    "all-zero",
    "constant",
    "zero-tile",
    "unwritten",
    "bias",
    "in-place-ignored",
    "input-clobbered",
    "out-of-bounds",
    "dtype",
    "shape",
    "stride",
    "missing-output",
    "nondeterministic",
    "distribution",
]
"""What a detector noticed; `nondeterministic` alone never makes a configuration *wrong*."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every record: immutable, keyword-only, compared by value."""


class Worst(_Record, frozen=True, kw_only=True):
    """The element that exceeds its allowance most."""

    index: tuple[int, ...]
    device: Number
    reference: Number
    """In double precision where the op could be raised, else the CPU's own result."""
    cpu: Number
    """The CPU's result in the configuration's dtype."""


class OutputResult(_Record, frozen=True, kw_only=True):
    """One output of a run against the reference."""

    name: str
    """Position for a returned tensor (`0`, `1[2]`), else the changed argument."""
    passed: bool
    standard: str
    """Class of the rule: `exact`, `pointwise`, `contraction`, …"""
    raised: bool = True
    """False when no reference in wider precision could be computed."""
    count: int = 0
    """Elements that fail."""
    elements: int = 0
    share: float = 0.0
    """`count` ÷ `elements`."""
    error_factor: Number = 0.0
    """The largest error ÷ what was allowed for that element; above one fails."""
    rmse_factor: Number = 0.0
    """The root mean square error ÷ what was allowed for it."""
    bias: float = 0.0
    """Relative gain error: 0.01 when the device's values are 1 % too large on the whole."""
    max_absolute: Number = 0.0
    max_relative: Number = 0.0
    """Over elements that are not zero in the reference."""
    cpu_absolute: Number = 0.0
    """The CPU's own largest error, for comparison."""
    min_tolerance: Number = 0.0
    """The smallest t for which |device − reference| ≤ t · max(|reference|) holds everywhere."""
    worst: Worst | None = None


class Detection(_Record, frozen=True, kw_only=True):
    """Something a detector noticed."""

    kind: Detector
    where: str
    """Output or argument by name; gradients as `grad of NAME`."""
    message: str


class GradientResult(_Record, frozen=True, kw_only=True):
    """The vector-Jacobian product of one configuration."""

    status: Status
    reason: str = ""
    outputs: tuple[OutputResult, ...] = ()
    """One for each differentiated input, by its name."""


class CaseResult(_Record, frozen=True, kw_only=True):
    """What a device did with one configuration."""

    op: str
    status: Status
    reason: str = ""
    """One sentence: what is wrong, or why nothing could be judged."""
    trial: str = "drawn"
    """Values that led to this result: `captured`, `drawn`, or a stress trial."""
    trials: tuple[str, ...] = ()
    """Every set of values that was run."""
    error: str = ""
    """What the device, or for *unknown* the reference, raised: type and text."""
    outputs: tuple[OutputResult, ...] = ()
    detections: tuple[Detection, ...] = ()
    gradient: GradientResult | None = None
    """None when the op is not differentiable here."""
    seed: int = 0
    first_s: float = 0.0
    """Seconds of the first call, with whatever is compiled for it; 0 when it raised."""
    device_lost: bool = False
    """Whether the error leaves the device unusable for this process."""

    @property
    def min_tolerance(self) -> Number:
        """The largest of the outputs' smallest passing tolerances."""
        return max((output.min_tolerance for output in self.outputs), key=_size, default=0.0)


def number(value: Any) -> Number:
    """A real or complex value as JSON can hold it."""
    if isinstance(value, complex):
        return str(value)
    return float(value) if math.isfinite(value) else str(float(value))


def _size(value: Number) -> float:
    return math.inf if isinstance(value, str) else value
