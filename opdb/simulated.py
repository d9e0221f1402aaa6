"""What releases did with calls when their own code was executed in the simulator."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import msgspec

from opdb import store, tables
from opdb.facts import plain, qualified

__all__ = [
    "ANY",
    "CATCH_ALL",
    "OUTCOMES",
    "Executed",
    "Simulated",
    "dtypes",
    "missing_callee",
    "simulated",
]

OUTCOMES = ("native-shader", "native-graph", "fallback", "raises", "mixed", "unknown")
ANY = "any"
"""The layout of a fact about calls as PyTorch samples them, and of all that have no own."""
CATCH_ALL = "is not currently implemented for the MPS device"
"""In the text of what is raised where no kernel is registered: the fallback variable replaces that
one."""
_MISSING = re.compile(rf"The operator '([\w:.]+)' {CATCH_ALL}")
_OF_VALUES = ("LinAlgError", "OutOfMemoryError")
"""Exceptions about what tensors hold, not what they are."""
_TYPES = re.compile(
    r"\b(d?types?|float\d*|floating|int\d*|integer|integral|long|bool|complex\d*)\b", re.I
)
_RUNS = frozenset({"native-shader", "native-graph", "fallback"})


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """One overload with one dtype of its main operand (`opdb.operands`) in one environment."""

    op: str
    """Qualified."""
    dtype: str
    release: str
    macos: str
    layout: str
    """`any`, or the layout that alone does this: strided, offset, expanded, empty, 0-dim."""
    outcome: Literal["native-shader", "native-graph", "fallback", "raises", "mixed", "unknown"]
    """`raises`: every sampled call with elements did, and on the CPU none. `mixed`: see `detail`.
    `unknown`: the simulator cannot tell."""
    calls: int
    """How many calls it was seen in."""
    waits: str
    """How often the CPU waits for the GPU in a call that ran: `0`, `1..4`; `-` where none did."""
    launches: str
    """Kernels and graphs that such a call launches."""
    detail: str
    """The exception's class and text without numbers; for `mixed` the counts before it; what the
    CPU computed for `fallback`; why for `unknown`; empty otherwise."""
    by_dtype: bool = False
    """It raises, and for its dtype: calls of another dtype all run, or some do and the text speaks
    of types. Without, what the samples have in common may be the reason: sizes, arguments."""
    fixed_in: str | None = None
    """First later simulated release from which on no simulated one raises."""

    @property
    def missing(self) -> str | None:
        """The operator without a kernel that the call ended in."""
        found = _MISSING.search(self.detail) if self.outcome == "raises" else None
        return found[1] if found else None


class Executed:
    """The facts of one data folder."""

    def __init__(self, known: store.Store) -> None:
        self._store = known
        self._spans: dict[str, list[store.Span]] = {}

    def environments(self, release: str) -> tuple[str, ...]:
        """macOS versions that a release was simulated on, ascending."""
        known = (name.partition("@") for name in self._store.simulations)
        return tuple(macos for each, _, macos in known if each == release)

    def simulated(
        self, op: str, dtype: str, release: str, macos: str | None = None, layout: str = ANY
    ) -> Simulated | None:
        """See `simulated` of this module."""
        place = self._place(release, macos)
        if place is None:
            return None
        lines = [line for line in self._lines(op) if line.span.values[0] == dtype]
        here = {line.layout: line for line in lines if line.span.holds(place)}
        found = here.get(layout, here.get(ANY))
        if found is None:
            return None
        fact = _fact(found, place, lines, list(self._store.simulations))
        others = [x for x in self._lines(op) if x.layout == ANY and x.span.holds(place)]
        return msgspec.structs.replace(fact, by_dtype=_by_dtype(fact, others))

    def dtypes(self, op: str, release: str, macos: str | None = None) -> tuple[Simulated, ...]:
        """See `dtypes` of this module."""
        place = self._place(release, macos)
        if place is None:
            return ()
        here = [line for line in self._lines(op) if line.span.holds(place)]
        found = (self.simulated(op, x.span.values[0], release, macos, x.layout) for x in here)
        facts = [fact for fact in found if fact is not None]
        return tuple(sorted(facts, key=lambda fact: (fact.dtype, fact.layout != ANY, fact.layout)))

    def missing_callee(self, op: str, release: str) -> Simulated | None:
        """See `missing_callee` of this module."""
        facts = [fact for fact in self.dtypes(op, release) if fact.layout == ANY]
        missing = {fact.missing for fact in facts}
        lacks = len(facts) > 1 and len(missing) == 1 and missing.isdisjoint({None, qualified(op)})
        return facts[0] if lacks else None

    def _place(self, release: str, macos: str | None) -> int | None:
        known = self.environments(release)
        if macos is not None:
            major = macos.partition(".")[0]
            known = tuple(each for each in known if each.partition(".")[0] == major)
        return self._store.environments[f"{release}@{known[-1]}"] if known else None

    def _lines(self, op: str) -> list[_Line]:
        name = plain(op)
        if name not in self._spans:
            self._spans[name] = self._store.find(tables.SIMULATED, name)
        return [_Line(span, span.values[1], span.values[2]) for span in self._spans[name]]


_DEFAULT = Executed(store.default)


def simulated(
    op: str, dtype: str, release: str, macos: str | None = None, layout: str = ANY
) -> Simulated | None:
    """What was seen, None where nothing was: no statement either way.

    `macos` counts with its major version; without it the newest that was simulated is meant. A
    `layout` without a fact of its own has that of `any`.
    """
    return _DEFAULT.simulated(op, dtype, release, macos, layout)


def dtypes(op: str, release: str, macos: str | None = None) -> tuple[Simulated, ...]:
    """Every fact about an overload in an environment, sorted by dtype and layout."""
    return _DEFAULT.dtypes(op, release, macos)


def missing_callee(op: str, release: str) -> Simulated | None:
    """A fact about an op whose calls all end in the lack of one other kernel, whatever the dtype.

    Whatever the macOS too: which kernels there are does not depend on it.
    """
    return _DEFAULT.missing_callee(op, release)


class _Line(NamedTuple):
    span: store.Span
    layout: str
    outcome: str


def _fact(line: _Line, place: int, lines: list[_Line], names: list[str]) -> Simulated:
    dtype, layout, outcome, calls, waits, launches, detail = line.span.values
    release, _, macos = names[place].partition("@")
    return msgspec.convert(
        {
            "op": qualified(line.span.op),
            "dtype": dtype,
            "release": release,
            "macos": macos,
            "layout": layout,
            "outcome": outcome,
            "calls": int(calls),
            "waits": waits,
            "launches": launches,
            "detail": "" if detail == "-" else detail,
            "fixed_in": _cured(layout, place, lines, names) if outcome == "raises" else None,
        },
        Simulated,
    )


def _by_dtype(fact: Simulated, others: list[_Line]) -> bool:
    if fact.outcome != "raises" or fact.detail.startswith(_OF_VALUES):
        return False
    if any(line.outcome in _RUNS for line in others):
        return True
    counts = [line.span.values[6].partition(";")[0] for line in others if line.outcome == "mixed"]
    return bool(_TYPES.search(fact.detail)) and any("native" in each for each in counts)


def _cured(layout: str, place: int, lines: list[_Line], names: list[str]) -> str | None:
    """The first of the simulated releases at the end of the list that all run such calls."""
    later = names[place + 1 :]
    outcomes = [_outcome(layout, place + 1 + at, lines) for at in range(len(later))]
    runs = 0
    while runs < len(outcomes) and outcomes[-1 - runs] in _RUNS:
        runs += 1
    return later[-runs].partition("@")[0] if runs else None


def _outcome(layout: str, place: int, lines: list[_Line]) -> str | None:
    found = {line.layout: line.outcome for line in lines if line.span.holds(place)}
    return found.get(layout, found.get(ANY))
