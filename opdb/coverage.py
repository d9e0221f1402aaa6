"""What a release does with every operator of PyTorch's own test database, by dtype and direction.

An entry of OpInfo is a function of the public API with samples of arguments; `opinfo.tsv` has the
overloads that it reaches. Its status is the worst of theirs, because one that raises stops it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from opdb import intervals, query, store, tables
from opdb.closure import Calls, reached
from opdb.facts import qualified
from opdb.issues.book import default as known_issues
from opdb.issues.effects import STATUS
from opdb.issues.ranges import reach
from scanner.records import Evidence, Status, Target
from scanner.statuses import SEVERITY_ORDER

__all__ = ["EVIDENCE", "Row", "coverage"]

EVIDENCE: tuple[Evidence, ...] = ("database", "simulated", "inferred", "issue")
"""What statuses may rest on. What PyTorch's tests expect (`upstream`) is apart from these."""

_WIDE = frozenset({"float64", "complex128"})


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One entry with one dtype in one direction."""

    name: str
    """As OpInfo spells it: `linalg.pinv`."""
    variant: str
    """`hermitian`; empty for none."""
    dtype: str
    direction: str
    """`forward`; `gradient`: forward and backward."""
    status: Status
    evidence: Evidence | None
    """None when unknown."""
    chain: tuple[str, ...]
    """How it comes to that: the overload that decides, and what that calls."""


class _Judged(NamedTuple):
    status: Status
    evidence: Evidence | None
    chain: tuple[str, ...]


def coverage(
    release: str, macos: str | None = None, evidence: Collection[str] = EVIDENCE
) -> Iterator[Row]:
    """Every row, in the order of the data file, dtypes in that of their precision."""
    target = Target(framework="torch", version=release, macos=macos)
    for _, fields in tables.lines(store.default.folder / tables.OPINFO.file, tables.OPINFO):
        name, variant, direction, dtypes, ops, issues, wide, releases = fields
        if not _holds(releases, release):
            continue
        shared = [
            *_of_ops(ops, release),
            *(_of_issues(issues, target)),
        ]
        for dtype in dtypes.split(","):
            own = [_WIDE_DTYPE] if wide == "wide" or dtype in _WIDE else []
            worst = _worst([*own, *shared], evidence)
            yield Row(
                name=name,
                variant="" if variant == "-" else variant,
                dtype=dtype,
                direction=direction,
                status=worst.status,
                evidence=worst.evidence,
                chain=worst.chain,
            )


def _holds(releases: str, release: str) -> bool:
    spans = intervals.decode(releases, store.default.places)
    return any(low <= store.default.places[release] <= high for low, high in spans)


_WIDE_DTYPE = _Judged("unsupported", "database", ("float64",))


def _worst(judged: list[_Judged], evidence: Collection[str]) -> _Judged:
    allowed = [each for each in judged if each.evidence is None or each.evidence in evidence]
    worst = min(allowed, key=lambda each: SEVERITY_ORDER.index(each.status), default=None)
    return worst or _Judged("unknown", None, ())


@cache
def _of_ops(ops: str, release: str) -> tuple[_Judged, ...]:
    """Of every overload that an entry reaches, in the light of the calls that it makes below."""
    names = ops.split(",")
    recorded: dict[str, tuple[str, ...]] = {}
    for op, *called in (name.split(">") for name in names):
        for each in (op, *called):
            recorded.setdefault(qualified(each), ())
        recorded[qualified(op)] += tuple(map(qualified, called))
    own = [qualified(op) for op in names if ">" not in op]
    executed = (_executed(op, release) for op in own)
    registered = (_of_op(op, release, recorded) for op in own)
    return (*registered, *(judged for judged in executed if judged))


def _executed(op: str, release: str) -> _Judged | None:
    """Of a kernel that always ended in a missing one when the release was executed."""
    if query.lookup(op, release).status != "native":
        return None
    seen = query.missing_callee(op, release)
    if seen is None or seen.missing is None:
        return None
    if query.lookup(seen.missing, release).status != "unsupported":
        return None
    return _Judged("unsupported", "simulated", (op, seen.missing))


def _of_op(op: str, release: str, recorded: Calls) -> _Judged:
    found = reached(
        op,
        lambda name: query.lookup(name, release),
        recorded,
        lambda name: query.lookup(name, tables.OPINFO_TORCH),
    )
    fact = query.lookup(op, release)
    if found.how == "always":
        return _Judged(found.status, fact.evidence, found.chain)
    if found.how == "open":
        status: Status = "unknown" if found.status == "unsupported" else fact.status
        return _Judged(status, None if status == "unknown" else "inferred", found.chain)
    return _Judged(found.status, "inferred", found.chain)


def _of_issues(ids: str, target: Target) -> Iterator[_Judged]:
    for name in ids.split(",") if ids != "-" else ():
        issue = known_issues.named(name)
        if issue and issue.effect in STATUS and reach(issue, target) == "yes":
            yield _Judged(STATUS[issue.effect], issue.evidence, (issue.id,))
