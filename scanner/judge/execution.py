"""What executing a release showed about a dtype refines what its registrations say."""

from __future__ import annotations

import msgspec

from opdb.operands import main_operand
from opdb.simulated import ANY, Simulated
from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.judge.interface import Knowledge
from scanner.records import OpCall, Target, TensorSpec, Verdict

__all__ = ["seen_of", "with_execution"]

_RUNS = frozenset({"native", "composite"})
_USELESS = f"; {FALLBACK_VARIABLE}=1 does not help: it replaces only missing kernels"
_LEAST = 2
"""Calls that must all raise before something is said about others."""


def with_execution(verdict: Verdict, call: OpCall, target: Target, knowledge: Knowledge) -> Verdict:
    """The verdict; *unsupported* where the op is registered to run, and raises for its dtype.

    Nothing follows from a dtype, layout or macOS that was not simulated, from outcomes that are
    mixed or unknown, from a single call, nor where calls of every dtype raise: sizes and arguments
    of the samples may be the reason. A kernel that always ends in an op without one is the
    exception.
    """
    if verdict.status not in _RUNS:
        return verdict
    lacking = knowledge.missing_callee(call.op, target.version)
    if verdict.status == "native" and lacking is not None and _missed(lacking, target, knowledge):
        where = f"as every call in simulated torch {lacking.release}"
        return _raising(verdict, lacking, target, where)
    seen = seen_of(call, target, knowledge)
    if seen is None or seen.calls < _LEAST or not seen.by_dtype:
        return verdict
    where = f"torch {seen.release} on macOS {seen.macos}"
    basis = f"as all {seen.calls} calls with {seen.dtype} in simulated {where}"
    return _raising(verdict, seen, target, basis)


def seen_of(call: OpCall, target: Target, knowledge: Knowledge) -> Simulated | None:
    """What was simulated of calls like this one; None where nothing was, and for empty tensors."""
    given = [spec for spec in call.inputs if spec.device != "cpu"]
    place = main_operand([spec.name for spec in given])
    main = given[place] if place is not None else next(iter(call.outputs), None)
    if main is None or any(spec.layout != "strided" for spec in given) or _empty(given):
        return None
    layout = ANY if main.shape else "0-dim"
    return knowledge.simulated(call.op, main.dtype, target.version, target.macos, layout)


def _missed(lacking: Simulated, target: Target, knowledge: Knowledge) -> bool:
    """Whether the database lacks that kernel too."""
    callee = lacking.missing
    found = callee and knowledge.lookup(callee, target.version).status == "unsupported"
    return bool(found)


def _raising(verdict: Verdict, seen: Simulated, target: Target, basis: str) -> Verdict:
    served = seen.missing is not None
    if served and target.fallback:
        reason = f"a kernel that it calls is missing; {FALLBACK_VARIABLE}=1 sends it to the CPU"
        return msgspec.structs.replace(
            verdict, status="fallback", evidence="inferred", reason=reason, fixed_in=seen.fixed_in
        )
    useless = "" if served else _USELESS
    return msgspec.structs.replace(
        verdict,
        status="unsupported",
        evidence="simulated",
        reason=f"it raises {seen.detail} ({basis}){useless}",
        fixed_in=seen.fixed_in,
    )


def _empty(given: list[TensorSpec]) -> bool:
    return bool(given) and all(0 in spec.shape for spec in given)
