"""From an op configuration and a target to a verdict: a table of small handlers, first match wins.

Nothing is guessed from an op's name: what the database does not know is `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from opdb.facts import served_on_cpu
from scanner.backends.mps_facts import FALLBACK_VARIABLE
from scanner.judge.composites import deciding, with_calls
from scanner.judge.execution import with_execution
from scanner.judge.interface import Knowledge, OpFact
from scanner.judge.known import issues_of, with_issues
from scanner.records import OpCall, OpGraph, Target, TensorSpec, Verdict

__all__ = [
    "FALLBACK_VARIABLE",
    "FLOAT64_MESSAGE",
    "FRESH",
    "WIDE",
    "judge",
    "makes_wide",
    "on_target",
    "variable_serves",
    "wide_dtypes",
]

FLOAT64_MESSAGE = "MPS framework doesn't support float64"
"""Part of the TypeError's text, in the library of every release; a test looks for it."""

WIDE = frozenset({"float64", "complex128"})
FRESH = "aten::lift_fresh"
"""What `torch.tensor()` ends in: its argument is the tensor that is being made."""
_SPARSE_KEYS = {
    "sparse_coo": "SparseMPS",
    "sparse_csr": "SparseCsrMPS",
    "sparse_csc": "SparseCsrMPS",
    "sparse_bsr": "SparseCsrMPS",
    "sparse_bsc": "SparseCsrMPS",
}

_Handler = Callable[[OpCall, Target, Knowledge], Verdict | None]


def judge(graph: OpGraph, target: Target, knowledge: Knowledge) -> tuple[Verdict, ...]:
    """One verdict for each of `graph.ops`, in their order."""
    return tuple(_verdict(call, target, knowledge, graph.framework_version) for call in graph.ops)


def on_target(call: OpCall) -> list[TensorSpec]:
    """Tensors of the call, inputs and outputs, that live on the device."""
    return [spec for spec in (*call.inputs, *call.outputs) if spec.device != "cpu"]


def wide_dtypes(call: OpCall) -> list[str]:
    """dtypes among the call's tensors on the device that MPS cannot hold, each once."""
    return list(dict.fromkeys(spec.dtype for spec in on_target(call) if spec.dtype in WIDE))


def makes_wide(call: OpCall) -> bool:
    """Whether the call brings such a dtype in: it has some on the device but was given none."""
    given = any(spec.dtype in WIDE and spec.device != "cpu" for spec in call.inputs)
    return bool(wide_dtypes(call)) and (call.op == FRESH or not given)


def variable_serves(call: OpCall, release: str, knowledge: Knowledge, captured: str) -> bool:
    """Whether the CPU fallback that the variable installs would run this call.

    `captured` is the torch that recorded it.

    It is a catch-all of the MPS key: it serves ops that nothing is registered for and the CPU has
    a kernel for. It does not serve ops whose registered function raises, nor sparse tensors, nor
    dtypes that no MPS tensor can have.
    """
    if _sparse_keys(call) or wide_dtypes(call):
        return False
    fact = deciding(call, release, knowledge, captured)
    return fact.status == "unsupported" and served_on_cpu(fact, knowledge.lookup)


def _sparse_keys(call: OpCall) -> list[str]:
    """Dispatch keys of the call's sparse tensors on the device."""
    layouts = {spec.layout for spec in on_target(call)}
    return sorted({_SPARSE_KEYS[layout] for layout in layouts & _SPARSE_KEYS.keys()})


def _verdict(call: OpCall, target: Target, knowledge: Knowledge, captured: str) -> Verdict:
    for handler in _HANDLERS:
        if (verdict := handler(call, target, knowledge)) is not None:
            return verdict
    verdict = _from_fact(call, target, knowledge, captured)
    verdict = with_calls(verdict, call, target, knowledge, captured)
    verdict = with_execution(verdict, call, target, knowledge)
    if verdict.status not in {"native", "composite"}:
        return verdict
    return with_issues(verdict, issues_of(call, target, knowledge))


def _kept_on_host(call: OpCall, target: Target, _: Knowledge) -> Verdict | None:
    if on_target(call) or not (call.inputs or call.outputs):
        return None
    return Verdict(
        target=target.id,
        status="skipped",
        evidence=None,
        reason="all its tensors are on the CPU, as the code asks",
    )


def _foreign(call: OpCall, target: Target, _: Knowledge) -> Verdict | None:
    namespace = call.op.split("::", 1)[0]
    if namespace == "aten":
        return None
    return Verdict(
        target=target.id,
        status="unknown",
        evidence=None,
        reason=f"{namespace} is not part of torch, and the database holds torch's own ops only",
    )


def _wide(call: OpCall, target: Target, _: Knowledge) -> Verdict | None:
    """Every release holds `FLOAT64_MESSAGE`, raised wherever a float64 tensor would be made."""
    if not (dtypes := wide_dtypes(call)):
        return None
    return Verdict(
        target=target.id,
        status="unsupported",
        evidence="database" if "float64" in dtypes else "inferred",
        reason=f"MPS has no {' or '.join(dtypes)}: torch raises TypeError",
    )


def _sparse(call: OpCall, target: Target, knowledge: Knowledge) -> Verdict | None:
    """Sparse tensors are dispatched on keys of their own; a kernel under one of them is enough."""
    facts = [knowledge.lookup(call.op, target.version, key) for key in _sparse_keys(call)]
    if not facts:
        return None
    runs = [fact for fact in facts if fact.status in {"native", "composite"}]
    return _stated(runs[0] if runs else facts[0], target)


def _from_fact(call: OpCall, target: Target, knowledge: Knowledge, captured: str) -> Verdict:
    verdict = _stated(knowledge.lookup(call.op, target.version), target)
    if verdict.status != "unsupported" or not target.fallback:
        return verdict
    if variable_serves(call, target.version, knowledge, captured):
        reason = f"no kernel is registered for MPS; {FALLBACK_VARIABLE}=1 sends it to the CPU"
        return msgspec.structs.replace(verdict, status="fallback", reason=reason)
    return verdict


def _stated(fact: OpFact, target: Target) -> Verdict:
    return Verdict(
        target=target.id,
        status=fact.status,
        evidence=fact.evidence,
        reason=fact.reason,
        fixed_in=fact.fixed_in,
        links=fact.links,
    )


_HANDLERS: tuple[_Handler, ...] = (_kept_on_host, _foreign, _wide, _sparse)
