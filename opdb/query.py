"""What opdb knows about PyTorch's operators on MPS: the interface that the scanner uses.

Imports neither torch nor anything slow; data files are read when they are first needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from opdb import database, store, tables
from opdb.facts import OpFact, plain, qualified
from opdb.names import resolve, suggest
from opdb.simulated import Simulated, missing_callee, simulated
from scanner.errors import UsageError

if TYPE_CHECKING:
    from opdb.issues.match import Match
    from scanner.records import OpCall, Target

__all__ = [
    "OpFact",
    "Simulated",
    "branching",
    "export",
    "issues",
    "leading",
    "list_ops",
    "lookup",
    "missing_callee",
    "newest",
    "registered",
    "releases",
    "resolve",
    "resolve_release",
    "simulated",
    "suggest",
]


def releases() -> tuple[str, ...]:
    """Known releases, oldest first."""
    return store.default.releases


def newest() -> str:
    """The newest known release."""
    return releases()[-1]


def resolve_release(text: str) -> str:
    """The release that a user means, as the other functions of this module take it.

    A known release is itself, local parts ignored (`2.9.1+cpu`). `2.9` is the newest patch release
    of 2.9, as `pip install torch==2.9.*` would choose. A version that opdb does not know, as of a
    nightly, is itself when it is the one installed here. UsageError for anything else.
    """
    public = text.strip().removeprefix("torch==").removeprefix("v").partition("+")[0]
    if public in releases():
        return public
    patches = [release for release in releases() if release.startswith(f"{public}.")]
    if patches and public.count(".") == 1:
        return patches[-1]
    from opdb import installed

    here = installed.version()
    if here and text.strip() in (here, here.partition("+")[0]):
        return here
    raise UsageError(
        f"torch {text} is not known to opdb and not installed here",
        remedy=f"Known near it: {_near(public)}. A nightly is judged where it is installed.",
    )


def _near(text: str) -> str:
    """A few known releases close to an unknown one, oldest first."""
    wanted = [int(part) for part in text.split(".")[:3] if part.isdecimal()]

    def distance(release: str) -> list[int]:
        parts = map(int, release.split("."))
        return [abs(have - want) for have, want in zip(parts, wanted, strict=False)]

    nearest = sorted(releases(), key=distance)[:4] if wanted else releases()[-4:]
    return ", ".join(sorted(nearest, key=releases().index))


def lookup(op: str, release: str, key: str = "MPS") -> OpFact:
    """Everything known about one overload in a release that `resolve_release` returned.

    `op` is spelled as `opdb.facts.plain` takes it. `key` is the dispatch key: `MPS` for dense
    tensors, `SparseMPS`, `SparseCsrMPS`. An op that the release lacks has status unknown.
    """
    if release in store.default.places:
        return database.fact(plain(op), release, key)
    from opdb import installed

    return installed.fact(plain(op), release, key)


@cache
def leading() -> frozenset[tuple[str, str]]:
    """Calls of kernels for all backends that lead to a missing op in some release, qualified."""
    spans = store.default.all(tables.PATHS)
    return frozenset((qualified(span.op), qualified(span.values[0])) for span in spans)


@cache
def branching() -> frozenset[str]:
    """Overloads whose kernel for all backends makes such a call."""
    return frozenset(op for op, _ in leading())


def issues(call: OpCall, target: Target) -> tuple[Match, ...]:
    """Known issues that apply, or may apply, to a configuration on a target, by id."""
    from opdb.issues.book import default
    from opdb.issues.match import find

    return find(default, call, target)


def registered(release: str, key: str = "MPS") -> tuple[str, ...]:
    """Overloads registered for a dispatch key in a release, plain names, sorted."""
    if release in store.default.places:
        return database.registered(release, key)
    from opdb import installed

    return installed.registered(release, key)


def export(release: str) -> Iterator[str]:
    """Every overload registered for MPS, qualified and sorted: the wheel's registration blocks."""
    return map(qualified, registered(release))


def list_ops(release: str, status: str | None = None) -> Iterator[OpFact]:
    """Facts about every overload of a release, sorted; optionally only those with a status."""
    facts = (lookup(name, release) for name in _plain_names(release))
    return (fact for fact in facts if status in (None, fact.status))


def names(release: str) -> tuple[str, ...]:
    """Every overload of a release, qualified and sorted."""
    return tuple(map(qualified, _plain_names(release)))


def _plain_names(release: str) -> Iterable[str]:
    if release in store.default.places:
        return database.names(release)
    from opdb import installed

    return installed.names(release)
