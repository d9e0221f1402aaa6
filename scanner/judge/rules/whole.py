"""What whole steps on a device have shown: each op there works on what the device made before."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.judge.rules.interface import Advice, define
from scanner.records import Divergence

__all__ = ["RULES", "WholeCase"]

_PARTS = {
    "forward": "the forward pass",
    "loss": "the loss",
    "backward": "the backward pass",
    "optimizer": "the optimizer",
}


@dataclass(frozen=True, kw_only=True)
class WholeCase:
    """One op that stood out when whole steps were run."""

    device: str
    """Spec as given."""
    found: Divergence

    @property
    def where(self) -> str:
        """`aten::mm in the backward pass of step 2`."""
        return f"{self.found.op} in {_PARTS[self.found.phase]} of step {self.found.step}"


def _elsewhere(case: WholeCase) -> str:
    return (
        f"Run this line on the CPU until {case.found.op} is right: "
        'give it x.cpu() and move the result back with .to("mps").'
    )


@define("OPS204", "step-diverges", "error", since="0.1.0")
def step_diverges(case: WholeCase) -> Advice | None:
    """A whole step on the device leaves the CPU's, and this op is where.

    With `--steps N`, each op of the training step runs on what the device itself has computed
    before, beside the CPU and beside double precision. The named op is the first whose error is
    past its tolerance and that gives something else than the CPU of the very same inputs: it errs
    itself. `docs/probe.md` says how that is told.

    ## What to do

    Do not train on it. Run this part on the CPU, and report the bug to PyTorch.
    """
    if case.found.kind != "wrong":
        return None
    message = f"{case.where} leaves the CPU's result on {case.device}: {case.found.message}"
    return Advice(message=message, remedy=_elsewhere(case))


@define("OPS205", "step-makes-nan", "error", since="0.1.0")
def step_makes_nan(case: WholeCase) -> Advice | None:
    """A whole step on the device makes NaN or infinity unlike the CPU's, and this op makes it.

    With `--steps N`. The named op is the first in which the number of elements that are not finite
    differs from the CPU's; whatever follows has inherited them. One that vanishes counts too.

    ## What to do

    Run this part on the CPU, or keep its inputs away from where it overflows.
    """
    if case.found.kind != "nan":
        return None
    message = f"{case.where} on {case.device}: {case.found.message}, unlike on the CPU"
    return Advice(message=message, remedy=_elsewhere(case))


@define("OPS206", "step-drifts", "note", since="0.1.0")
def step_drifts(case: WholeCase) -> Advice | None:
    """Rounding alone takes a whole step on the device away from the CPU's.

    With `--steps N`. From the named op on, results are further from those in double precision than
    the CPU's own errors explain, but the op itself is right: of the same inputs the CPU computes
    the same. Small differences have grown on the way, as they do where a computation is
    ill-conditioned.

    ## What to do

    Nothing, if the losses agree. Else look at what comes before: subtraction of nearly equal
    numbers, division by small ones, long recurrences, half precision.
    """
    if case.found.kind != "drift":
        return None
    return Advice(
        message=f"{case.where} has drifted from the CPU's on {case.device}: {case.found.message}; "
        "of the same inputs both compute the same",
        remedy="Compare the losses of more steps, or compute this part in a wider dtype.",
    )


@define("OPS208", "step-ends", "error", since="0.1.0")
def step_ends(case: WholeCase) -> Advice | None:
    """A whole step on the device does not come to its end: this op raises, crashes or hangs.

    With `--steps N`. The step runs in a process of its own, which may die; the op that the device
    had been given last is named, with what the process printed.

    ## What to do

    Avoid this configuration: other sizes or dtypes may work. Report the bug to PyTorch.
    """
    verb = {"raises": "raises", "crash": "ends the process", "hang": "hangs"}.get(case.found.kind)
    if verb is None:
        return None
    message = f"{case.where} {verb} on {case.device}: {case.found.message}"
    return Advice(message=message, remedy=_elsewhere(case))


RULES = (step_diverges, step_makes_nan, step_drifts, step_ends)
