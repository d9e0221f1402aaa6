"""Which calls bring a dtype in that MPS does not have, and which only pass it on."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.judge.verdicts import FRESH, WIDE, makes_wide
from scanner.records import Location, OpCall, OpGraph, Value

__all__ = ["Wide"]

_Place = tuple[int, int]
"""An op, and one of its locations."""


@dataclass(frozen=True)
class Wide:
    """What is known of one graph's float64 and complex128 tensors."""

    made: bool
    """Whether some call makes one of others."""
    given: dict[_Place, tuple[Value, ...]]
    """Call → the parameters, buffers and inputs of such a dtype that it is the first to read."""
    copied: frozenset[Location | None]
    """Places of calls that make one; save `torch.tensor()`'s end, which a copy may precede."""

    @classmethod
    def of(cls, graph: OpGraph) -> Wide:
        """Reads the graph once."""
        making = [call for call in graph.ops if makes_wide(call)]
        places = {place for x in making if x.op != FRESH for place in x.locations or (None,)}
        return cls(bool(making), _first_reads(graph), frozenset(places))

    def sources(self, op: int, location: int) -> tuple[Value, ...]:
        """What the user gave that a call is the first to read."""
        return self.given.get((op, location), ())

    def inherits(self, call: OpCall, place: Location | None, sources: tuple[Value, ...]) -> bool:
        """Whether what is wide in the call is reported at another one."""
        if makes_wide(call):
            return call.op == FRESH and place in self.copied
        return (self.made or bool(self.given)) and not sources


def _first_reads(graph: OpGraph) -> dict[_Place, tuple[Value, ...]]:
    found: dict[_Place, tuple[Value, ...]] = {}
    seen: set[int] = set()
    for step in graph.steps:
        new = [index for index in dict.fromkeys(step.reads) if index not in seen]
        seen.update(new)
        given = tuple(value for index in new if _is_given(value := graph.values[index]))
        if given and _takes_wide(graph.ops[step.op]):
            place = (step.op, step.location)
            found[place] = (*found.get(place, ()), *given)
    return found


def _is_given(value: Value) -> bool:
    return value.role in {"parameter", "buffer", "input"} and value.dtype in WIDE


def _takes_wide(call: OpCall) -> bool:
    """Whether such a tensor is on the device, and not kept on the CPU."""
    return any(spec.dtype in WIDE and spec.device != "cpu" for spec in call.inputs)
