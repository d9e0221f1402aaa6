"""What executing a release showed of kernels that run: what they cost beside the GPU's work."""

from __future__ import annotations

from opdb.simulated import Simulated
from scanner.judge.rules.interface import Advice, OpCase, define

__all__ = ["RULES", "is_costly"]

_READS_A_VALUE = frozenset({"aten::_local_scalar_dense"})
"""A number in Python exists only once everything before it was computed."""


def is_costly(op: str, seen: Simulated | None) -> bool:
    """Whether a rule of this module has something to say of calls that run."""
    return op in _READS_A_VALUE or _works_on_cpu(seen) or _waits(seen) is not None


@define("OPS303", "waits-for-gpu", "note", since="0.1.0")
def waits_for_gpu(case: OpCase) -> Advice | None:
    """An op that waits until the GPU has finished everything before it.

    The CPU normally issues ops ahead of the GPU. An op whose result has a size that depends on
    values (`nonzero`, `masked_select`, `unique`), that checks its result, or that gives a number to
    Python (`.item()`) needs the values themselves: the queue runs empty, and the GPU idles until
    new work arrives. The waits were counted while the release's own code was executed in the
    simulator; ops that wait for some arguments only are not reported.

    ## What to do

    Keep it out of the inner loop: use a mask instead of selecting (`torch.where`,
    `masked_fill`), the `_ex` form of a factorization, and read losses every N steps, detached and
    summed on the device.
    """
    times = "once" if case.call.op in _READS_A_VALUE else _waits(case.seen)
    if times is None or _works_on_cpu(case.seen):
        return None
    basis = f" (simulated torch {case.seen.release})" if case.seen is not None else ""
    return Advice(
        message=f"{case.subject} waits for the GPU {times} a call{basis}",
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


def _waits(seen: Simulated | None) -> str | None:
    """How often every call waits: `once`, `2 times`, `1 to 4 times`; None where some do not."""
    if seen is None or seen.waits == "-":
        return None
    least, _, most = seen.waits.partition("..")
    if int(least) == 0:
        return None
    if most:
        return f"{least} to {most} times"
    return "once" if least == "1" else f"{least} times"


RULES = (waits_for_gpu, computes_on_cpu_inside)
