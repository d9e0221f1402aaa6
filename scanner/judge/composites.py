"""What a configuration of a composite op really calls refines what its registrations say."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from opdb.closure import Reached, reached
from opdb.facts import served_on_cpu
from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.judge.interface import Knowledge, OpFact
from scanner.records import OpCall, Target, Verdict

__all__ = ["deciding", "with_calls"]


def deciding(call: OpCall, release: str, knowledge: Knowledge, captured: str) -> OpFact:
    """What is known about the op that the call comes to: itself, or the one that stops it below.

    `captured` is the torch that recorded the call.
    """
    found = _found(call, release, knowledge, captured)
    if found.how == "open":
        return knowledge.lookup(call.op, release)
    return _decider(found, release, knowledge)


def with_calls(
    verdict: Verdict, call: OpCall, target: Target, knowledge: Knowledge, captured: str
) -> Verdict:
    """The verdict of a composite op, by what its kernel calls for these arguments.

    `captured` is the torch that ran it. Where that cannot tell whether something is called that MPS
    lacks, the verdict is *unknown*.
    """
    if verdict.status != "composite":
        return verdict
    found = _found(call, target.version, knowledge, captured)
    last = knowledge.lookup(found.chain[-1], target.version)
    decider = _decider(found, target.version, knowledge)
    by_variable = (
        target.fallback and not decider.registered and served_on_cpu(decider, knowledge.lookup)
    )
    return _HANDLERS[found.how](verdict, found, last, by_variable)


def _found(call: OpCall, release: str, knowledge: Knowledge, captured: str) -> Reached:
    ran = captured.partition("+")[0]
    return reached(
        call.op,
        lambda op: knowledge.lookup(op, release),
        call.inner,
        lambda op: knowledge.lookup(op, ran),
    )


def _decider(found: Reached, release: str, knowledge: Knowledge) -> OpFact:
    """The first of a chain that is bad by what it always calls; the last where none is."""
    facts = [knowledge.lookup(op, release) for op in found.chain]
    return next((fact for fact in facts if fact.status != "composite"), facts[-1])


def _known(verdict: Verdict, found: Reached, last: OpFact, by_variable: bool) -> Verdict:
    """A run decides, or what is always called."""
    evidence = verdict.evidence if found.how == "always" else "inferred"
    if found.status == verdict.status:
        spared = "; with these arguments it calls nothing that MPS lacks"
        reason = verdict.reason + (spared if found.how == "recorded" else "")
        return msgspec.structs.replace(verdict, evidence=evidence, reason=reason)
    chain, status = _arrows(found.chain), found.status
    when = "always" if found.how == "always" else "with these arguments"
    reason = f"{when} {chain}; {last.reason}"
    if status == "unsupported" and by_variable:
        status = "fallback"
        reason = f"{when} {chain}, which {FALLBACK_VARIABLE}=1 sends to the CPU"
    return msgspec.structs.replace(
        verdict,
        status=status,
        evidence=evidence,
        reason=reason,
        fixed_in=last.fixed_in,
        links=last.links,
    )


def _open(verdict: Verdict, found: Reached, last: OpFact, by_variable: bool) -> Verdict:
    """The release may call what MPS lacks, or runs on the CPU, and no run tells whether it does."""
    chain = _arrows(found.chain)
    reason = f"whether it calls {chain} with these arguments is not known; {last.reason}"
    if found.status == "unsupported" and not by_variable:
        return msgspec.structs.replace(verdict, status="unknown", evidence=None, reason=reason)
    return msgspec.structs.replace(verdict, evidence="inferred", reason=reason)


_HANDLERS: dict[str, Callable[[Verdict, Reached, OpFact, bool], Verdict]] = {
    "always": _known,
    "recorded": _known,
    "open": _open,
}


def _arrows(chain: tuple[str, ...]) -> str:
    return " -> ".join(op.removeprefix("aten::") for op in chain)
