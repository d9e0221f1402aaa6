"""What executing a release showed of kernels that run: what they cost beside the GPU's work."""

from __future__ import annotations

from opdb.simulated import Simulated
from scanner.judge.rules.interface import Advice, OpCase, define
from scanner.records import OpCall

__all__ = ["RULES", "is_costly"]

_READS_A_VALUE = frozenset({"aten::_local_scalar_dense"})
"""A number in Python exists only once everything before it was computed."""


def is_costly(call: OpCall, seen: Simulated | None) -> bool:
    """Whether a rule of this module has something to say of a call that runs."""
    return _works_on_cpu(seen) or _waits(call, seen) is not None


@define("OPS303", "waits-for-gpu", "note", since="0.1.0")
def waits_for_gpu(case: OpCase) -> Advice | None:
    """An op that waits until the GPU has finished everything before it.

    The CPU normally issues ops ahead of the GPU. An op whose result has a size that depends on
    values (`nonzero`, `masked_select`, `unique`), that checks its result, or that gives a number to
    Python (`.item()`) needs the values themselves: the queue runs empty, and the GPU idles until
    new work arrives. The waits were counted while the release's own code was executed in the
    simulator; ops that wait for some arguments only are not reported. Numbers that are given as
    tensors of the device (`masked_fill(mask, value)`, `linspace(start, end)`) are read back as
    well; given as Python numbers, or as tensors of the CPU, they are not.

    ## What to do

    Keep it out of the inner loop: use a mask instead of selecting (`torch.where`,
    `masked_fill`), the `_ex` form of a factorization, and read losses every N steps, detached and
    summed on the device.
    """
    waits = _waits(case.call, case.seen)
    if waits is None or _works_on_cpu(case.seen):
        return None
    basis = f" (simulated torch {case.seen.release})" if case.seen is not None else ""
    return Advice(
        message=f"{case.subject} waits for the GPU {_times(waits)} a call{basis}",
        waits=waits,
        remedy="Keep it out of the inner loop, or compute the same without sizes or numbers that "
        "depend on values.",
    )


@define("OPS304", "computes-on-cpu-inside", "warning", since="0.1.0")
def computes_on_cpu_inside(case: OpCase) -> Advice | None:
    """An op with an MPS kernel that hands the work to a library on the CPU.

    It is registered for MPS, so nothing says that it does: no error, no warning, and
    `PYTORCH_ENABLE_MPS_FALLBACK` changes nothing. The CPU function was seen while the release's own
    code was executed in the simulator; the finding names it. Every call waits for the GPU.

    ## What to do

    As for OPS102: keep it out of the inner loop, or upgrade when a later release computes it on
    the GPU.
    """
    if not _works_on_cpu(case.seen) or case.seen is None:
        return None
    return Advice(
        message=f"{case.subject} is registered for MPS and computes on the CPU inside: "
        f"{case.seen.detail} (simulated torch {case.seen.release})",
        remedy="Keep it out of the inner loop: every call waits for the GPU.",
    )


def _works_on_cpu(seen: Simulated | None) -> bool:
    return seen is not None and seen.outcome == "fallback"


def _waits(call: OpCall, seen: Simulated | None) -> tuple[int, int] | None:
    """How often every such call waits, least and most; None where some do not.

    The calls that were executed had all their tensors on the device, where a number is read back.
    """
    if call.op in _READS_A_VALUE:
        return 1, 1
    on_cpu = any(spec.device == "cpu" and not spec.shape for spec in call.inputs)
    if seen is None or seen.waits == "-" or on_cpu:
        return None
    least, _, most = seen.waits.partition("..")
    return (int(least), int(most or least)) if int(least) else None


def _times(waits: tuple[int, int]) -> str:
    """`once`, `2 times`, `1 to 4 times`."""
    least, most = waits
    if most > least:
        return f"{least} to {most} times"
    return "once" if least == 1 else f"{least} times"


RULES = (waits_for_gpu, computes_on_cpu_inside)
