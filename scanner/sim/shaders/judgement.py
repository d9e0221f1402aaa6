"""What the workers said of the parts of a launch → how the launch ended."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from .instrument import Site
from .protocol import Bound, Description, Done, Refused
from .results import Finding, Findings, NotExecutable, Outcome, Ran

__all__ = ["outcome_of"]


def outcome_of(
    kernel: str,
    known: Description,
    bound: Sequence[Bound],
    done: Sequence[Done | Refused],
    seconds: float,
) -> Outcome:
    """The outcome of all parts together; `seconds` is what each might have used."""
    ran: list[Done] = []
    for part in done:
        if isinstance(part, Refused):
            return NotExecutable(part.reason)
        if part.outcome != "ran":
            return NotExecutable(_stopped(part, seconds))
        ran.append(part)
    took = max(part.seconds for part in ran)
    named = dict(zip(known.buffers, bound, strict=True))
    findings = _findings(known, named, [part.violations for part in ran], False)
    notes = _findings(known, named, [part.notes for part in ran], True)
    if not findings:
        return Ran(took, notes)
    return Findings(kernel, findings, took, notes)


def _stopped(part: Done, seconds: float) -> str:
    if part.outcome == "out of time":
        return f"the shader had not ended after {seconds:g} s"
    if part.outcome == "too large":
        return "the threadgroup has more threads than there is memory for"
    name = signal.Signals(part.signal).name
    return f"the shader's code was stopped by {name} at address {part.fault_address:#x}"


def _findings(
    known: Description,
    bound: dict[int, Bound],
    parts: Sequence[Sequence[tuple[int, int, int]]],
    inside: bool,
) -> tuple[Finding, ...]:
    """What all parts of a launch saw, one finding a site."""
    seen: dict[int, tuple[int, int]] = {}
    for site, count, offset in (entry for part in parts for entry in part):
        before = seen.get(site)
        seen[site] = (count + before[0], before[1]) if before else (count, offset)
    return tuple(
        _finding(known.sites[site], count, offset, bound, inside)
        for site, (count, offset) in sorted(seen.items())
    )


def _finding(site: Site, count: int, offset: int, bound: dict[int, Bound], inside: bool) -> Finding:
    if site.kind == "division":
        return Finding(kind="division", count=count)
    at = bound.get(site.argument, Bound())
    return Finding(
        kind="write" if site.kind == "write" else "read",
        argument=site.argument,
        name=site.name,
        count=count,
        offset=offset - at.before,
        length=(at.length or len(at.data or b"")) - at.slack,
        inside=inside,
    )
