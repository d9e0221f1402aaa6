"""What is known to go wrong with ops that MPS does have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.judge.rules.interface import Advice, OpCase, define
from scanner.records import Severity

if TYPE_CHECKING:
    from opdb.issues.match import Match

__all__ = ["RULES"]


@define("OPS108", "condition-unsupported", "error", since="0.1.0")
def condition_unsupported(case: OpCase) -> Advice | None:
    """An op that MPS has, in a configuration that its kernel refuses.

    The kernel looks at its arguments (sizes, dtypes, modes, strides) and raises an error for some
    of them. The finding quotes the condition's title; `opscan explain ISSUE` shows the condition
    itself, the releases and where the fact is from.

    ## What to do

    Change the configuration so that the condition does not hold, upgrade when a later release
    takes it, or run this line on the CPU. `PYTORCH_ENABLE_MPS_FALLBACK=1` does not help with checks
    inside a kernel: it serves ops without one. The finding says whether it does.
    """
    advice = _advice(case, {"unsupported"}, "raises")
    if advice is None or case.issue is None:
        return None
    helps = "avoids this" if case.issue.issue.fallback_helps else "does not help"
    return replace(advice, remedy=f"{advice.remedy} {FALLBACK_VARIABLE}=1 {helps}.")


@define("OPS109", "fallback-inside", "warning", since="0.1.0")
def fallback_inside(case: OpCase) -> Advice | None:
    """An op whose MPS kernel hands its work to the CPU in this configuration.

    It is registered for MPS, so nothing says that it does: no error and no warning. Every call
    waits for the GPU and copies its inputs out and its results back.

    ## What to do

    As for OPS102: keep it out of the inner loop, or upgrade when a later release computes it on
    the GPU.
    """
    return _advice(case, {"fallback"}, "works on the CPU")


@define("OPS211", "known-wrong-values", "error", since="0.1.0")
def known_wrong_values(case: OpCase) -> Advice | None:
    """A configuration that is known to give wrong numbers in this release.

    Nothing is raised: the step goes on with the wrong result. `opscan explain ISSUE` shows the
    condition, the affected releases and systems, how sure the range is, and the thread.

    It is a warning when the ends of the range are not verified, and a note when the target does
    not say on which macOS or chip it runs and the issue is limited to some, or when it depends on
    something that no configuration shows, as on a NaN among the elements.

    ## What to do

    Upgrade to the release that cures it, or use the workaround that the finding names. `--device
    mps` on a Mac, or `--device metal-sim` anywhere, runs the configuration and shows whether your
    combination is affected.
    """
    return _advice(case, {"wrong-values"}, "is wrong")


@define("OPS212", "known-wrong-gradients", "error", since="0.1.0")
def known_wrong_gradients(case: OpCase) -> Advice | None:
    """A configuration whose gradient is known to be wrong in this release.

    The forward result is right, so inference is not affected; training silently goes astray: the
    loss still falls for a while, because most gradients are right.

    ## What to do

    As for OPS211: upgrade to the release that cures it, use the workaround that the finding names,
    or run this line on the CPU, forward and backward.
    """
    return _advice(case, {"wrong-gradients"}, "has wrong gradients")


@define("OPS213", "known-nan", "error", since="0.1.0")
def known_nan(case: OpCase) -> Advice | None:
    """A configuration that is known to give NaN or infinity where the CPU does not.

    One NaN in a loss or gradient reaches every weight with the next optimizer step.

    ## What to do

    As for OPS211: upgrade to the release that cures it, use the workaround that the finding names,
    or run this line on the CPU.
    """
    return _advice(case, {"nan"}, "gives NaN or infinity")


@define("OPS214", "known-crash", "error", since="0.1.0")
def known_crash(case: OpCase) -> Advice | None:
    """A configuration that is known to end or hang the process in this release.

    An assertion inside Metal cannot be caught: Python is gone, with everything that was not saved.
    A hang looks like a slow step that never ends.

    ## What to do

    As for OPS211, and save checkpoints before the step.
    """
    return _advice(case, {"crash", "hang"}, "ends or hangs the process")


@define("OPS302", "known-slow", "warning", since="0.1.0")
def known_slow(case: OpCase) -> Advice | None:
    """A configuration that is known to be much slower than it should be in this release.

    The result is right. How much slower is told by the thread that the finding links to; `--timing`
    on a Mac measures it.

    ## What to do

    Upgrade to the release that cures it, or use the workaround that the finding names.
    """
    return _advice(case, {"slow"}, "is slow")


@define("OPS401", "known-memory", "warning", since="0.1.0")
def known_memory(case: OpCase) -> Advice | None:
    """A configuration that is known to take or keep much more memory than it should.

    Unified memory is shared with everything else on the machine: a step that grows ends in swap,
    which is slow, or in an out-of-memory error, after hours.

    ## What to do

    Upgrade to the release that cures it, or use the workaround that the finding names.
    """
    return _advice(case, {"memory"}, "takes too much memory")


RULES = (
    condition_unsupported,
    fallback_inside,
    known_wrong_values,
    known_wrong_gradients,
    known_nan,
    known_crash,
    known_slow,
    known_memory,
)


def _advice(case: OpCase, effects: Collection[str], what: str) -> Advice | None:
    if case.issue is None or case.issue.issue.effect not in effects:
        return None
    issue = case.issue.issue
    return Advice(
        message=f"{case.subject} {what} in torch {case.target.version}{_where(case.issue)}: "
        f"{issue.title} [{issue.id}]",
        remedy=_remedy(case.issue),
        severity=_severity(case.issue),
        fixed_in=issue.fixed_in,
        links=issue.links,
    )


def _severity(match: Match) -> Severity | None:
    """Less than the rule's own where it is not sure that the target is affected."""
    if match.reach == "maybe":
        return "note"
    return "warning" if match.issue.confidence == "unverified" else None


def _where(match: Match) -> str:
    """The limits that the target and the configuration do not answer."""
    if match.reach == "yes":
        return ""
    limits = []
    if match.issue.macos:
        limits.append(f"macOS {' or '.join(match.issue.macos)}")
    if match.issue.chips:
        limits.append(" or ".join(match.issue.chips))
    systems = f" on {' and '.join(limits)}" if limits else ""
    return f"{systems} where {match.issue.unseen}" if match.issue.unseen else systems


def _remedy(match: Match) -> str:
    issue = match.issue
    parts = []
    if issue.fixed_in:
        parts.append(f"Upgrade to torch {issue.fixed_in} or later, which cures it.")
    if issue.workaround:
        parts.append(issue.workaround)
    if not parts:
        parts.append("Run this line on the CPU and move the result back: x.cpu() … .to('mps').")
    if issue.confidence == "unverified":
        parts.append("Which releases are affected is not verified.")
    return " ".join(parts)
