"""A whole step run freely on a device: where does it part from the CPU?

Errors add up from op to op here. What is found is the first op whose result is further from the
raised reference than the CPU's own by more than the rule allows; whether it errs itself, or only
passes on what rounding has made of its inputs, is told by computing it once more on the CPU from
the device's own inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scanner.probe.fingerprint import Fingerprint
from scanner.probe.rebuild import dtype_of
from scanner.probe.standards import CONTRACTION, Standard, unit

__all__ = ["Gap", "gap_of", "worst_gap"]

_FLIPPED = 1e-2
"""Share of whole numbers (indices, masks) that may differ: at ties, rounding decides."""


_NONSENSE = 0.5
"""A CPU whose errors are this large against the reference shows what is left of terms that cancel,
as the gradient of a bias before a softmax: noise, whose size depends on the order of the sum."""
_CANCELLED = 1000.0
"""Times the CPU's noise that the device's may then be."""


@dataclass(frozen=True)
class Gap:
    """How far one output of the device is off."""

    error: float
    """Root mean square, relative to the reference's."""
    own: float
    """The CPU's."""
    allowed: float
    nans: int = 0
    """Elements that are infinite or NaN here, less those on the CPU."""
    message: str = ""
    floating: bool = True

    @property
    def past(self) -> bool:
        """Whether it is more than is allowed."""
        return self.error > self.allowed or self.nans != 0

    @property
    def share(self) -> float:
        """Error in units of what is allowed."""
        return self.error / self.allowed if self.allowed else float(self.error > 0)


Prints = Mapping[str, Fingerprint]
"""Output → what is kept of it."""


def worst_gap(ours: Prints, cpu: Prints, raised: Prints, standard: Standard = CONTRACTION) -> Gap:
    """The worst of all outputs that both have."""
    gaps = [
        gap_of(mine, cpu[name], raised.get(name), standard)
        for name, mine in ours.items()
        if name in cpu
    ]
    return max(gaps, key=lambda gap: (gap.nans != 0, gap.share), default=Gap(0.0, 0.0, 1.0))


def gap_of(
    mine: Fingerprint,
    theirs: Fingerprint,
    right: Fingerprint | None,
    standard: Standard = CONTRACTION,
) -> Gap:
    """One output of the device beside the CPU's and the reference."""
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        told = f"it gives {_shown(mine)}, the CPU {_shown(theirs)}"
        return Gap(float("inf"), 0.0, 1.0, message=told)
    if right is None or right.shape != mine.shape:
        right = theirs
    dtype = dtype_of(theirs.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return _counted(mine, theirs, right)
    error, own = _errors(mine, theirs, right)
    # Errors have added up before: no op is held to less than a contraction.
    loose = max(CONTRACTION, standard, key=lambda each: each.single.scale)
    allowance = loose.allowance(dtype)
    floor = (allowance.relative + allowance.scale) * unit(dtype)
    nans = mine.lost - theirs.lost
    if nans:
        message = _not_finite(nans)
    else:
        message = f"relative error {error:.3g}, the CPU's own is {own:.3g}"
    factor = _CANCELLED if own > _NONSENSE else loose.factor
    return Gap(error, own, factor * own + floor, nans, message)


def _counted(mine: Fingerprint, theirs: Fingerprint, right: Fingerprint) -> Gap:
    count = max(mine.samples.numel(), 1)
    error = int((mine.samples != theirs.samples).sum()) / count
    own = int((theirs.samples != right.samples).sum()) / count
    message = f"{error:.3g} of its whole numbers differ"
    return Gap(error, own, own + _FLIPPED, message=message, floating=False)


def _errors(mine: Fingerprint, theirs: Fingerprint, right: Fingerprint) -> tuple[float, float]:
    """The device's and the CPU's error, relative to the reference."""
    finite = right.samples.isfinite() & theirs.samples.isfinite() & mine.samples.isfinite()
    reference = right.samples[finite]
    scale = float(reference.square().mean().sqrt()) if reference.numel() else 0.0
    if not reference.numel():
        return 0.0, 0.0

    def error(each: Fingerprint) -> float:
        # Nothing but zeros gives no measure: what is there then counts as it is.
        return float((each.samples[finite] - reference).square().mean().sqrt()) / (scale or 1.0)

    return error(mine), error(theirs)


def _not_finite(nans: int) -> str:
    elements = "1 element" if abs(nans) == 1 else f"{abs(nans)} elements"
    if nans > 0:
        return f"infinity or NaN in {elements}"
    return f"no infinity or NaN in {elements} that should have it"


def _shown(kept: Fingerprint) -> str:
    return f"{kept.dtype}[{','.join(map(str, kept.shape))}]"
