"""What a composite kernel reaches, as far as a recorded run tells which of its calls it makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from opdb.facts import OpFact, Support

__all__ = ["MORE", "Calls", "Reached", "reached"]

Calls = Mapping[str, Collection[str]]
"""Overload that was followed → overloads that it called directly, both qualified; see `MORE`."""

MORE = "..."
"""Last of the calls of an overload that could not be followed to its end."""

Lookup = Callable[[str], OpFact]


class Reached(NamedTuple):
    """The worst that a composite kernel comes to."""

    status: Support
    """`unsupported` or `fallback`, else the op's own."""
    chain: tuple[str, ...]
    """From the op down to the one that has the status itself."""
    how: str
    """`always`; `recorded`: a call of the run decides, be it one that was made or was not; `open`:
    whether a call of the chain is made is not known."""


def reached(op: str, lookup: Lookup, recorded: Calls, recorder: Lookup) -> Reached:
    """What `op`, qualified, comes to in the release that `lookup` answers for.

    `recorded` are calls of a run of it with the torch that `recorder` answers for, empty where
    there is none. A call that was made there counts if the release makes it too; one that could
    have been made and was not is left out; nothing is known of a call that only the release has.
    """
    return _Walk(lookup, recorded, recorder).below(op, ())


class _Walk(NamedTuple):
    lookup: Lookup
    recorded: Calls
    recorder: Lookup

    def below(self, op: str, path: tuple[str, ...]) -> Reached:
        fact = self.lookup(op)
        path = (*path, op)
        if fact.status in {"unsupported", "fallback"}:
            return Reached(fact.status, self._always(path), "always")
        found = list(self._worse(fact, path)) if fact.status == "composite" else []
        known = [each for each in found if each.how in {"always", "recorded"}]
        avoided = any(each.how == "avoided" for each in found)
        opened = [each for each in found if each.how == "open"]
        if worst := _worst(known) or _worst(opened):
            return worst
        return Reached(fact.status, path, "recorded" if avoided else "always")

    def _worse(self, fact: OpFact, path: tuple[str, ...]) -> Iterator[Reached]:
        """What its calls come to, where that is bad; `avoided` are those that the run spared."""
        for call, when in fact.leads.items():
            if call in path:
                continue
            below = self.below(call, path)
            if below.status not in {"unsupported", "fallback"}:
                if below.how == "recorded":
                    yield below._replace(how="avoided")
                continue
            how = when if when == "always" else self._made(fact.op, call)
            yield below._replace(how=_joined(how, below.how))

    def _made(self, op: str, call: str) -> str:
        made = self.recorded.get(op, (MORE,))
        if call in made:
            return "recorded"
        return "open" if MORE in made or call not in self.recorder(op).leads else "avoided"

    def _always(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path, continued by what its last overload always calls."""
        status = self.lookup(path[-1]).status
        for call in self.lookup(path[-1]).calls:
            if call not in path and self.lookup(call).status == status:
                return self._always((*path, call))
        return path


def _joined(above: str, below: str) -> str:
    """How a chain is known whose two parts are known so."""
    return next(how for how in ("avoided", "open", "recorded", "always") if how in (above, below))


def _worst(found: list[Reached]) -> Reached | None:
    ranks = {"unsupported": 0, "fallback": 1}
    return min(found, key=lambda each: ranks[each.status], default=None)
