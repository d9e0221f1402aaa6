"""What the simulator saw of an op, as lines of `opscan db op`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from opdb.simulated import ANY, Simulated

__all__ = ["executed"]


def executed(facts: Iterable[Simulated]) -> Iterator[str]:
    """A heading and a line for each set of dtypes that do the same; nothing without facts."""
    known = sorted(facts, key=lambda fact: (fact.layout != ANY, _said(fact), fact.dtype))
    if not known:
        return
    yield f"  executed in the simulator, macOS {known[0].macos}, by dtype of the main operand:"
    for said, alike in groupby(known, key=_said):
        dtypes = " ".join(fact.dtype for fact in alike)
        yield f"    {dtypes}: {said}"


def _said(fact: Simulated) -> str:
    parts = [fact.outcome if fact.layout == ANY else f"{fact.layout}: {fact.outcome}"]
    if fact.detail:
        parts.append(f"({fact.detail})")
    if fact.waits not in {"0", "-"}:
        parts.append(f"waits for the GPU {fact.waits} times a call")
    return " ".join(parts)
