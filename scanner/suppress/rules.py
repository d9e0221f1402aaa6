"""OPS8xx: ignores and baselines that do not do what they say."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.judge.rules.interface import Advice, define
from scanner.suppress.interface import Entry

__all__ = ["RULES", "Accepted"]


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """One ignore, or one line of a baseline, and what came of it."""

    subject: str
    """`the ignore of OPS102`."""
    rule: str = ""
    """The rule at issue, as the user wrote it."""
    unused: bool = False
    expired: str = ""
    """The day until which it held; empty when it holds."""
    unknown: bool = False
    protected: bool = False
    near: str = ""
    """A rule that the user may have meant."""
    mistake: str = ""
    """Why a comment cannot be used."""
    fixed: Entry | None = None
    """A line of a baseline of which fewer findings are there than it holds."""
    left: int = 0
    """How many of them are still there."""


@define("OPS801", "ignore-unused", "warning", since="0.1.0")
def ignore_unused(case: Accepted) -> Advice | None:
    """An ignore matches no finding.

    What it was written for has been mended, has moved to another line, or was never there. Left
    standing, it would hide the next finding of its kind.

    An ignore is unused only where opscan has looked: a comment about an op on a line whose ops were
    judged, one about a rule that needs a device where a device was run, one about source code where
    source rules were asked. An entry of the settings that names neither a file nor a model is about
    the whole project, of which a scan may see a part: it is unused where the op that it names was
    run and has no such finding.

    ## What to do

    Remove it. If the finding is on another line of a longer statement, move the comment to the line
    that the report names, or to a line of its own above it.
    """
    if not case.unused:
        return None
    return Advice(
        message=f"{case.subject} matches no finding", remedy="Remove it, or move it to its line."
    )


@define("OPS802", "ignore-expired", "warning", since="0.1.0")
def ignore_expired(case: Accepted) -> Advice | None:
    """An ignore of the settings has expired, and hides nothing any more.

    `expires` names the last day on which it holds. The findings that it was about are reported
    again, and count for the exit code as if it were not there.

    ## What to do

    Look at the findings: mend them, or write down a later day if the reason still holds.
    """
    if not case.expired:
        return None
    return Advice(
        message=f"{case.subject} has expired: it held until {case.expired}",
        remedy="Mend what it hides, remove it, or set a later day.",
    )


@define("OPS803", "ignore-unknown-rule", "warning", since="0.1.0")
def ignore_unknown_rule(case: Accepted) -> Advice | None:
    """An ignore names a rule that does not exist, or one that cannot be ignored.

    Findings OPS8xx are about ignores themselves. OPS9xx are about what kept opscan from judging:
    hiding them would make what is not known look like a pass. For an incomplete scan there is
    `--allow-incomplete`, which says so in the exit code only.

    ## What to do

    Write an id of the list of rules: `opscan explain OPS102` shows one. Where a scan problem is
    accepted, use `--allow-incomplete`.
    """
    if case.protected:
        return Advice(
            message=f"{case.subject} has no effect: {case.rule} cannot be ignored",
            remedy="Mend its cause; --allow-incomplete accepts a scan that is not complete.",
        )
    if not case.unknown:
        return None
    meant = f"Did you mean {case.near}? " if case.near else ""
    return Advice(
        message=f"{case.subject} has no effect: there is no rule {case.rule}",
        remedy=f"{meant}docs/rules/index.md lists all rules.",
    )


@define("OPS804", "ignore-malformed", "warning", since="0.1.0")
def ignore_malformed(case: Accepted) -> Advice | None:
    """A comment begins like an ignore and cannot be used as one. It hides nothing.

    An ignore names its rules and says why:

        values = torch.linalg.svdvals(x)  # opscan: ignore[OPS102] once an epoch, 3 ms

    A comment without a reason would be as good as none a year later, and one without rules would
    hide whatever is found next on its line.

    ## What to do

    Add what is missing: the ids in brackets, separated by commas, and the reason after them.
    """
    if not case.mistake:
        return None
    return Advice(
        message=f"{case.subject} hides nothing: {case.mistake}",
        remedy="Write it as `# opscan: ignore[OPS102] the reason`.",
    )


@define("OPS805", "baseline-fixed", "note", since="0.1.0")
def baseline_fixed(case: Accepted) -> Advice | None:
    """A baseline holds a finding that is not there any more.

    Good news, but the line should go: it would hide the finding if it came back. It is said only of
    what the scan has looked at again: the same model, captured whole, with the same kind of check
    (a finding of a device is not said to be fixed by a scan without one).

    ## What to do

    Run `opscan baseline prune` with the report, and commit the file.
    """
    if case.fixed is None:
        return None
    entry = case.fixed
    about = f" about {entry.op}" if entry.op else ""
    where = entry.model or entry.file
    left = f"; {case.left} of {case.left + entry.count} are left" if case.left else ""
    return Advice(
        message=f"the baseline holds {entry.rule}{about} in {where}, which is fixed{left}",
        remedy="Run `opscan baseline prune` with this report.",
    )


RULES = (ignore_unused, ignore_expired, ignore_unknown_rule, ignore_malformed, baseline_fixed)
