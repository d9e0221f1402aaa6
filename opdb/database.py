"""Facts about the releases that the data files know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from opdb import intervals, store, tables
from opdb.facts import Basis, OpFact, Support, judge, qualified

__all__ = ["by_hand", "fact", "names", "registered", "statuses"]

_CURES: dict[Support, tuple[Support, ...]] = {
    "unsupported": ("native", "composite", "fallback"),
    "fallback": ("native", "composite"),
}


_LIBRARY = "torch/lib/libtorch_cpu.dylib"
_SOURCES = {"decomposition": "torch/backends/mps/__init__.py"}


def fact(name: str, release: str, key: str) -> OpFact:
    """Everything known about an overload (plain name) in a known release."""
    place = store.default.places[release]
    known = _basis(name, place, key)
    status, reason = _judge(name, place, key)
    wheel, *_, tracker = store.default.provenance[release]
    fields: dict[str, Any] = {
        "registered": known.registered or None,
        "composite": None if known.composite == "none" else known.composite,
        "calls": tuple(map(qualified, known.calls)),
        "links": (tracker,) if status == "unsupported" else (),
        "leads": _leads(name, place) if status == "composite" and not known.registered else {},
        **_group(name, place),
        **_history(name, place, key),
    }
    return OpFact(
        op=qualified(name),
        version=release,
        status=status,
        evidence="database" if known.exists else None,
        reason=reason if known.exists else _absent(name, release),
        exists=known.exists,
        key=key,
        source=f"{_SOURCES.get(known.registered, _LIBRARY)} of {wheel}",
        cpu=known.cpu,
        **fields,
    )


def names(release: str) -> tuple[str, ...]:
    """All overloads of a release, plain names, sorted."""
    place = store.default.places[release]
    return tuple(span.op for span in store.default.all(tables.OPS) if span.holds(place))


def registered(release: str, key: str) -> tuple[str, ...]:
    """Overloads registered for a dispatch key, plain names, sorted."""
    place = store.default.places[release]
    spans = store.default.all(tables.MPS)
    return tuple(span.op for span in spans if span.values[0] == key and span.holds(place))


@cache
def by_hand(key: str) -> dict[str, str]:
    """What the newest known release registers as a fallback or to raise, and which of the two."""
    newest = len(store.default.releases) - 1
    spans = [span for span in store.default.all(tables.MPS) if span.holds(newest)]
    found = {span.op: span.values[1] for span in spans if span.values[0] == key}
    return {name: function for name, function in found.items() if function != "kernel"}


def statuses(name: str, key: str) -> list[Support]:
    """Status in every known release, oldest first."""
    return [_judge(name, place, key)[0] for place in range(len(store.default.releases))]


@cache
def _spans(table: tables.Table, name: str) -> list[store.Span]:
    return store.default.find(table, name)


@cache
def _basis(name: str, place: int, key: str) -> Basis:
    for span in _spans(tables.OPS, name):
        if span.holds(place):
            composite, calls, cpu = span.values
            if composite == "nonfunctional" and key != "MPS":
                composite = "none"  # torch registers these kernels for dense backends only
            called = () if calls == "-" else tuple(calls.split(","))
            registered = _registered(name, place, key)
            sparse = any(_registered(name, place, other) for other in ("SparseMPS", "SparseCsrMPS"))
            return Basis(True, registered, composite, called, cpu == "cpu", sparse)
    return Basis()


def _registered(name: str, place: int, key: str) -> str:
    """What serves the key: a kernel registered from Python replaces the library's."""
    found = {
        span.values[0]: span.values[1] for span in _spans(tables.MPS, name) if span.holds(place)
    }
    return found.get(f"{key}.python") or found.get(key, "")


@cache
def _judge(name: str, place: int, key: str) -> tuple[Support, str]:
    return judge(name, key, lambda other: _basis(other, place, key))


def _group(name: str, place: int) -> dict[str, Any]:
    for span in _spans(tables.GROUPS, name):
        if span.holds(place):
            variant, group, view = span.values
            return {"variant": variant, "group": qualified(group), "is_view": view == "view"}
    return {}


def _leads(name: str, place: int) -> dict[str, str]:
    spans = (span for span in _spans(tables.PATHS, name) if span.holds(place))
    return {qualified(span.values[0]): span.values[1] for span in spans}


def _absent(name: str, release: str) -> str:
    """Why an overload is unknown to a release."""
    known = store.default.releases
    if "::" in name:
        return f"opdb knows PyTorch's own operators, the namespace aten; {name} is of another"
    spans = _spans(tables.OPS, name)
    if not spans:
        return f"not an operator of any torch release from {known[0]} to {known[-1]}"
    first = min(span.ranges[0][0] for span in spans)
    last = max(span.ranges[-1][1] for span in spans)
    early = store.default.places[release] < first
    when = f"first seen in {known[first]}" if early else f"last seen in {known[last]}"
    return f"not an operator of torch {release} ({when})"


def _history(name: str, place: int, key: str) -> dict[str, Any]:
    """native_since, fallback_versions and fixed_in, from the statuses in all releases."""
    known, each = store.default.releases, statuses(name, key)
    falls = [release for release, status in zip(known, each, strict=True) if status == "fallback"]
    native, cured = _native_since(each, place), _cured(each, place)
    return {
        "native_since": None if native is None else known[native],
        "fallback_versions": tuple(intervals.encode(falls, known).split(",")) if falls else (),
        "fixed_in": None if cured is None else known[cured],
    }


def _native_since(each: Sequence[Support], place: int) -> int | None:
    before: tuple[Support | None, ...] = (None, *each)
    starts = [at for at, status in enumerate(each) if status == "native" and before[at] != "native"]
    if each[place] == "native":
        return max(at for at in starts if at <= place)
    later = [at for at in starts if at > place]
    return later[0] if later else max(starts, default=None)


def _cured(each: Sequence[Support], place: int) -> int | None:
    cures = _CURES.get(each[place], ())
    later = range(place + 1, len(each))
    return next((at for at in later if each[at] in cures), None)
