"""What a device did when it ran an op: found by running it, not by looking it up."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.judge.rules.interface import Advice, define
from scanner.records import Status

__all__ = ["RULES", "VARIANT_RULES", "MeasuredCase", "VariantCase"]


@dataclass(frozen=True, kw_only=True)
class MeasuredCase:
    """One op configuration that a device has run."""

    op: str
    device: str
    """Spec as given: `mps`, `cuda`, `drill:nan=aten::exp`."""
    status: Status
    reason: str
    variable_serves: bool = False
    """Seen to run on the CPU where PYTORCH_ENABLE_MPS_FALLBACK is set."""


@dataclass(frozen=True, kw_only=True)
class VariantCase:
    """One op configuration as autocast would run it, on a device."""

    op: str
    device: str
    dtype: str
    status: Status
    base_status: Status
    """Of the configuration itself."""
    reason: str
    overflows: int = 0
    """Elements that are infinite or NaN in this dtype alone."""


def _on_cpu(case: MeasuredCase) -> str:
    return (
        f"Run this line on the CPU until {case.op} is right: "
        'give it x.cpu() and move the result back with .to("mps").'
    )


@define("OPS106", "op-raises", "error", since="0.1.0")
def op_raises(case: MeasuredCase) -> Advice | None:
    """The device raised when the op was run, where the CPU does not.

    The configuration was rebuilt with the step's dtypes, shapes, strides and offsets and run in a
    worker process. The finding quotes what was raised. On MPS it was then run in a second worker
    that had been started with `PYTORCH_ENABLE_MPS_FALLBACK=1`, and the finding says what became of
    it there: that it raises too, or that it runs on the CPU and what a call costs.

    ## What to do

    As for OPS101: upgrade when a later release has a kernel, or run this part on the CPU.
    """
    if case.status != "unsupported":
        return None
    variable = f" Or set {FALLBACK_VARIABLE}=1 before torch is imported."
    return Advice(
        message=f"{case.op} raises on {case.device}: {case.reason}",
        remedy=_on_cpu(case) + (variable if case.variable_serves else ""),
    )


@define("OPS107", "op-falls-back", "warning", since="0.1.0")
def op_falls_back(case: MeasuredCase) -> Advice | None:
    """The op ran on the CPU although its tensors are on the device.

    PyTorch says so for the first such op of a process only; opscan asks for every one, and asks the
    dispatcher where it sends the op. Then it times a call, as the device runs it and on the CPU
    alone. A call that falls back waits until the device has done all that was asked of it before,
    copies its inputs out and its outputs back, and the device idles meanwhile.

    ## What to do

    Upgrade when a later release has a kernel, or keep the tensors of this part on the CPU, so that
    they are not copied on every call.
    """
    if case.status != "fallback":
        return None
    return Advice(
        message=f"{case.op} on {case.device} {case.reason}",
        remedy="Keep what this line works on on the CPU, or use an op that the device has.",
    )


@define("OPS201", "wrong-values", "error", since="0.1.0")
def wrong_values(case: MeasuredCase) -> Advice | None:
    """The device computed something else than the CPU, beyond what rounding explains.

    Two references are computed on the CPU: in the same dtype, and in double precision. The device
    is allowed a small multiple of the CPU's own error, plus a floor that depends on the kind of
    op; `docs/comparison.md` has the rules. The finding names the worst element, and the smallest
    tolerance that would have passed.

    ## What to do

    Do not train on it. Run this part on the CPU, and report the bug to PyTorch.
    """
    if case.status != "wrong":
        return None
    return Advice(
        message=f"{case.op} is wrong on {case.device}: {case.reason}", remedy=_on_cpu(case)
    )


@define("OPS202", "nan-or-infinity", "error", since="0.1.0")
def nan_or_infinity(case: MeasuredCase) -> Advice | None:
    """NaN or infinity appeared, or vanished, where the CPU says otherwise.

    A NaN that vanishes is as bad as one that appears: it hides that training has diverged. The
    finding names the tensor, and how many of its elements differ in this way.

    ## What to do

    Run this part on the CPU, and report the bug to PyTorch.
    """
    if case.status != "nan":
        return None
    return Advice(message=f"{case.op} on {case.device}: {case.reason}", remedy=_on_cpu(case))


@define("OPS203", "op-crashes", "error", since="0.1.0")
def op_crashes(case: MeasuredCase) -> Advice | None:
    """Running the op ended or hung the process that ran it.

    opscan runs ops in worker processes that may die. The op in flight was run again alone before it
    was blamed; the finding says how the process ended and quotes what it printed last.

    ## What to do

    Avoid this configuration: other sizes or dtypes may work. Report the bug to PyTorch.
    """
    if case.status != "crash":
        return None
    return Advice(
        message=f"{case.op} ends the process on {case.device}: {case.reason}", remedy=_on_cpu(case)
    )


@define("OPS301", "slower-than-cpu", "warning", since="0.1.0")
def slower_than_cpu(case: MeasuredCase) -> Advice | None:
    """The device takes longer than the CPU for this configuration, with confidence.

    Both were timed repeatedly after warm-up, first calls apart; the finding gives both medians. It
    is reported only when the difference is larger than the spread of the samples.

    ## What to do

    Use larger batches, so that the work outweighs the launch, or leave small models on the CPU.
    """
    if case.status != "slow":
        return None
    return Advice(
        message=f"{case.op} on {case.device} {case.reason}",
        remedy="Give it more work at once (a larger batch), or keep this part on the CPU.",
    )


@define("OPS207", "autocast-variant-fails", "warning", since="0.1.0")
def autocast_variant_fails(case: VariantCase) -> Advice | None:
    """The device fails at an op in the half precision that autocast would run it in.

    With `--autocast` opscan also runs the ops that autocast casts, with their float32 tensors in
    that dtype, and judges them as it judges the model's own: against the CPU in the same dtype and
    in double precision. Which ops these are is asked of the installed torch. The model itself does
    not run them so far, hence a warning. A result that overflows in this dtype alone is reported
    too, although that is no fault of the device.

    ## What to do

    Use the other half-precision dtype if that one passes, or keep this part out of autocast:
    `with torch.autocast("mps", enabled=False):`.
    """
    remedy = (
        f'Keep this line out of autocast to {case.dtype}: torch.autocast("mps", enabled=False).'
    )
    if case.status not in {"wrong", "nan", "unsupported", "crash"}:
        if not case.overflows:
            return None
        what = f"{case.overflows:,} elements are infinite or NaN, which they are not in float32"
        return Advice(message=f"{case.op} overflows in {case.dtype}: {what}", remedy=remedy)
    beside = "" if case.base_status == case.status else f" (in float32: {case.base_status})"
    what = f"{case.op} in {case.dtype} on {case.device} is {case.status}{beside}"
    return Advice(
        message=f"{what}: {case.reason}",
        remedy=remedy,
    )


VARIANT_RULES = (autocast_variant_fails,)

RULES = (op_raises, op_falls_back, wrong_values, nan_or_infinity, op_crashes, slower_than_cpu)
