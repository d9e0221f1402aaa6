"""Small records for tests: graphs written by hand, and a database of a few ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from opdb.facts import OpFact
from opdb.issues.match import Match
from opdb.simulated import Simulated
from scanner.records import Capture, Location, OpCall, OpGraph, Target, TensorSpec, Unseen

TORCH_29 = Target(framework="torch", version="2.9.1")
TORCH_214 = Target(framework="torch", version="2.14.0")
TORCH_210 = Target(framework="torch", version="2.10.0")


def spec(shape: tuple[int, ...] = (4, 4), dtype: str = "float32", **other: Any) -> TensorSpec:
    """A contiguous tensor."""
    stride = tuple(prod(shape[place + 1 :]) for place in range(len(shape)))
    given = {"name": "self", "dtype": dtype, "shape": shape, "stride": stride}
    return TensorSpec(**(given | other))


def at(line: int, code: str = "", module: str = "", file: str = "model.py") -> Location:
    return Location(file=file, line=line, code=code, module=module)


def call(op: str, *inputs: TensorSpec, **other: Any) -> OpCall:
    """A forward call, made once on line 1."""
    given: dict[str, Any] = {"phase": "forward", "locations": (at(1, "y = f(x)"),)}
    return OpCall(op=op, inputs=inputs or (spec(),), **(given | other))


def graph(*ops: OpCall, capture: Capture | None = None, **other: Any) -> OpGraph:
    given: dict[str, Any] = {
        "name": "Net",
        "source": "model.py",
        "entry": "Net",
        "framework": "torch",
        "framework_version": "2.13.0",
        "mode": "train",
        "holds": (),
        "capture": capture or Capture(method="meta", complete=True),
        "ops": ops,
    }
    return OpGraph(**(given | other))


def partial(what: str, reason: str) -> Capture:
    """A capture that missed something."""
    return Capture(method="real", complete=False, unseen=(Unseen(what=what, reason=reason),))


class Facts:
    """A database of the given ops: (op, release) or op → fields of its fact.

    Ops that are not given are unknown; keys other than MPS are looked up as `op@key`. `executed`
    are (op, dtype) or (op, dtype, layout) → fields of what was simulated, in any release; the dtype
    `every` is for what no dtype can do.
    """

    def __init__(
        self,
        facts: Mapping[Any, Mapping[str, Any]],
        matches: Mapping[str, Sequence[Match]] | None = None,
        executed: Mapping[tuple[str, ...], Mapping[str, Any]] | None = None,
    ) -> None:
        self._facts = facts
        self._matches = matches or {}
        self._executed = executed or {}

    def issues(self, call: OpCall, target: Target) -> tuple[Match, ...]:
        return tuple(self._matches.get(call.op, ()))

    def lookup(self, op: str, release: str, key: str = "MPS") -> OpFact:
        name = op if key == "MPS" else f"{op}@{key}"
        known = self._facts.get((name, release), self._facts.get(name))
        given: dict[str, Any] = {"status": "unknown", "evidence": None, "reason": "not an op"}
        if known is not None:
            given = {"evidence": "database", "reason": "the reason", **known}
        return OpFact(op=op, version=release, exists=known is not None, key=key, **given)

    def simulated(
        self, op: str, dtype: str, release: str, macos: str | None = None, layout: str = "any"
    ) -> Simulated | None:
        known = self._executed.get((op, dtype, layout), self._executed.get((op, dtype)))
        if known is None:
            return None
        given: dict[str, Any] = {"calls": 3, "waits": "-", "launches": "-", "detail": "", **known}
        where = {"release": release, "macos": macos or "26.2", "layout": layout}
        return Simulated(op=op, dtype=dtype, **where, **given)

    def missing_callee(self, op: str, release: str) -> Simulated | None:
        return self.simulated(op, "every", release)


KERNEL = {"status": "native", "registered": "kernel", "reason": "an MPS kernel is registered"}
COMPOSITE = {"status": "composite", "composite": "implicit", "reason": "decomposed"}
MISSING = {"status": "unsupported", "cpu": True, "reason": "no kernel is registered for MPS"}
RAISES = {"status": "unsupported", "registered": "raises", "reason": "it only raises"}
SILENT = {"status": "fallback", "registered": "fallback", "reason": "registered to run on the CPU"}
