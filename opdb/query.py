"""What opdb knows about PyTorch's operators on MPS. Imports neither torch nor anything slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from opdb import intervals, store, tables
from opdb.facts import Basis, OpFact, Support, qualified, support
from scanner.errors import UsageError

__all__ = [
    "OpFact",
    "export",
    "list_ops",
    "lookup",
    "newest",
    "plain",
    "registered",
    "releases",
    "resolve_release",
    "suggest",
]

_DEPTH = 4
"""Generated composite kernels call at most two others in turn; more is a loop in the data."""


def releases() -> tuple[str, ...]:
    """Known releases, oldest first."""
    return store.default.releases


def newest() -> str:
    """The newest known release."""
    return releases()[-1]


def resolve_release(text: str) -> str:
    """The known release that a user means.

    `2.9.1` is itself, local parts are ignored (`2.9.1+cpu`), `2.9` is the newest patch release of 2.9, as
    `pip install torch==2.9.*` would choose. UsageError for anything else.
    """
    public = text.strip().removeprefix("v").partition("+")[0]
    if public in releases():
        return public
    patches = [release for release in releases() if release.startswith(f"{public}.")]
    if patches and public.count(".") == 1:
        return patches[-1]
    raise UsageError(f"torch {text} is not known to opdb", remedy=f"Known near it: {_near(public)}.")


def _near(text: str) -> str:
    """A few known releases close to an unknown one, oldest first."""
    digits = [int(part) for part in text.split(".")[:3] if part.isdecimal()]
    order = sorted(releases(), key=lambda release: _distance(release, digits))[:4]
    return ", ".join(sorted(order, key=releases().index))


def _distance(release: str, digits: Sequence[int]) -> tuple[int, ...]:
    return tuple(abs(int(a) - b) for a, b in zip(release.split("."), digits, strict=False))


def plain(op: str) -> str:
    """An overload's name without namespace and without `.default`.

    Takes `aten::x.y`, `aten.x.y`, `torch.ops.aten.x.default`, `x`. Other namespaces are kept: `prims::mul`.
    """
    name = op.strip().removeprefix("torch.ops.")
    for prefix in ("aten::", "aten."):
        name = name.removeprefix(prefix)
    return name.removesuffix(".default")


def lookup(op: str, release: str, key: str = "MPS") -> OpFact:
    """Everything known about one overload in one known release (as `resolve_release` spells it).

    `key` is the dispatch key: `MPS` for dense tensors, `SparseMPS`, `SparseCsrMPS`.
    """
    name, place = plain(op), store.default.places[release]
    known = _basis(name, place, key)
    status, reason = _support(name, place, key)
    if not known.exists:
        reason = _absent(name, release)
    wheel, *_, tracker = store.default.provenance[release]
    return OpFact(
        op=name if "::" in name else qualified(name),
        version=release,
        status=status,
        evidence=None if status == "unknown" else "database",
        reason=reason,
        exists=known.exists,
        registered=known.registered or None,  # type: ignore[arg-type]
        key=key,
        source=f"{wheel}: libtorch_cpu.dylib, registrations of aten for {key}",
        composite=None if known.composite == "none" else known.composite,  # type: ignore[arg-type]
        calls=qualified(known.calls) or None,
        cpu=known.cpu,
        links=(tracker,) if status == "unsupported" else (),
        **_group(name, place),
        **_history(name, place, key, status),
    )


def _group(name: str, place: int) -> dict[str, Any]:
    for span in store.default.find(tables.GROUPS, name):
        if span.holds(place):
            variant, group, view = span.values
            return {"variant": variant, "group": qualified(group), "is_view": view == "view"}
    return {}


@lru_cache(maxsize=8192)
def _basis(name: str, place: int, key: str) -> Basis:
    registered = next(
        (
            span.values[1]
            for span in _spans(tables.MPS, name)
            if span.values[0] == key and span.holds(place)
        ),
        "",
    )
    for span in _spans(tables.OPS, name):
        if span.holds(place):
            composite, calls, cpu = span.values
            if composite == "nonfunctional" and key != "MPS":
                composite = "none"
            return Basis(True, registered, composite, calls.strip("-"), cpu == "cpu")
    return Basis(False, "", "none", "", False)


@lru_cache(maxsize=8192)
def _spans(table: tables.Table, name: str) -> list[store.Span]:
    return store.default.find(table, name)


def _support(name: str, place: int, key: str, depth: int = 0) -> tuple[Support, str]:
    known = _basis(name, place, key)
    called: tuple[Support, str] = ("unknown", "")
    if known.calls and depth < _DEPTH:
        called = _support(known.calls, place, key, depth + 1)
    return support(name, known, called)


def _absent(name: str, release: str) -> str:
    """Why an operator is unknown to a release."""
    if "::" in name:
        return f"opdb knows PyTorch's own operators, namespace aten; {name} is of another library"
    spans = _spans(tables.OPS, name)
    if not spans:
        return f"not an operator of any torch release known to opdb ({releases()[0]} to {newest()})"
    first = releases()[min(span.ranges[0][0] for span in spans)]
    last = releases()[max(span.ranges[-1][1] for span in spans)]
    there = f"it first appears in {first}" if releases().index(release) < releases().index(first) else ""
    return f"not an operator of torch {release}; {there or f'it was last seen in {last}'}"


def _history(name: str, place: int, key: str, status: Support) -> dict[str, Any]:
    """native_since, fallback_versions and fixed_in, from the statuses in all releases."""
    statuses = [_support(name, at, key)[0] for at in range(len(releases()))]
    falls = [release for release, each in zip(releases(), statuses, strict=True) if each == "fallback"]
    return {
        "native_since": _native_since(statuses, place),
        "fallback_versions": tuple(intervals.encode(falls, releases()).split(",")) if falls else (),
        "fixed_in": _fixed_in(statuses, place, status),
    }


def _native_since(statuses: Sequence[Support], place: int) -> str | None:
    starts = [
        at
        for at, each in enumerate(statuses)
        if each == "native" and (at == 0 or statuses[at - 1] != "native")
    ]
    if statuses[place] == "native":
        return releases()[max(at for at in starts if at <= place)]
    later = [at for at in starts if at > place]
    chosen = later[0] if later else (starts[-1] if starts else None)
    return None if chosen is None else releases()[chosen]


def _fixed_in(statuses: Sequence[Support], place: int, status: Support) -> str | None:
    cures = {"unsupported": ("native", "composite", "fallback"), "fallback": ("native", "composite")}
    for at in range(place + 1, len(statuses)):
        if statuses[at] in cures.get(status, ()):
            return releases()[at]
    return None


def registered(release: str, key: str = "MPS") -> tuple[str, ...]:
    """Overloads registered for a dispatch key in a release, plain names, sorted."""
    place = store.default.places[release]
    spans = store.default.all(tables.MPS)
    return tuple(span.op for span in spans if span.values[0] == key and span.holds(place))


def export(release: str) -> Iterator[str]:
    """One registered MPS overload a line, qualified, sorted."""
    return (qualified(name) for name in registered(release))


def list_ops(release: str, status: str | None = None) -> Iterator[OpFact]:
    """Facts about every overload of a release, sorted by name; optionally only those with a status."""
    place = store.default.places[release]
    for span in store.default.all(tables.OPS):
        if span.holds(place):
            fact = lookup(span.op, release)
            if status is None or fact.status == status:
                yield fact


def suggest(op: str, limit: int = 5) -> tuple[str, ...]:
    """Known overloads that a misspelled or incomplete name may mean, qualified, best first."""
    import difflib

    name = plain(op)
    known = sorted({span.op for span in store.default.all(tables.OPS)})
    base = name.partition(".")[0]
    overloads = [each for each in known if each.partition(".")[0] == base]
    close = difflib.get_close_matches(name, known, limit, cutoff=0.75)
    return tuple(qualified(each) for each in dict.fromkeys([*overloads, *close]))[:limit]
