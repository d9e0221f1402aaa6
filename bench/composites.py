"""Composite ops that reach what MPS lacks: always, or for some arguments only.

    python bench/composites.py [--release V]… [--list]

Counts overloads without an MPS kernel that a kernel for all backends serves. Those that decompose
before a device is chosen (implicit) are seen op by op in every capture; of the others a capture
follows the calls (`scanner/capture/inside.py`). `entries` are OpInfo entries with float32, forward,
that reach one of the others; their statuses are those of the support matrix.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from opdb import query
from opdb.closure import Reached, reached
from opdb.coverage import coverage
from opdb.facts import OpFact

RELEASES = ("2.5.1", "2.9.1", "2.13.0", "2.15.0")
BAD = {"unsupported", "fallback"}


class Case(NamedTuple):
    """An overload and the worst that it may come to."""

    fact: OpFact
    found: Reached

    @property
    def implicit(self) -> bool:
        """Whether it decomposes before a device is chosen."""
        return self.fact.composite == "implicit"


def cases(release: str) -> Iterator[Case]:
    """Composite overloads whose kernel may come to something bad in the release."""

    def lookup(op: str) -> OpFact:
        return query.lookup(op, release)

    for fact in query.list_ops(release, "composite"):
        found = reached(fact.op, lookup, {}, lookup)
        if not fact.registered and found.status in BAD:
            yield Case(fact, found)


def show(release: str, *, listed: bool) -> None:
    """Prints one release."""
    found = list(cases(release))
    total = sum(1 for fact in query.list_ops(release, "composite") if not fact.registered)
    counts = Counter((case.implicit, case.found.how, case.found.status) for case in found)
    print(f"torch {release}: {total} composite overloads")
    for (implicit, how, status), count in sorted(counts.items()):
        kind = "implicit" if implicit else "explicit"
        when = "always" if how == "always" else "for some arguments"
        print(f"  {count:4} {kind} reach {when} what is {status}")
    ops = {case.fact.op for case in found if not case.implicit}
    for row in coverage(release, evidence=("database", "inferred")):
        if row.dtype == "float32" and row.direction == "forward" and row.chain[0] in ops:
            print(f"  entry {row.name}.{row.variant}: {row.status}  {' -> '.join(row.chain)}")
    for case in found if listed else ():
        how = "always" if case.found.how == "always" else "maybe"
        print(f"    {case.found.status:11} {how:6} {' -> '.join(case.found.chain)}")


def main(arguments: list[str] | None = None) -> int:
    """Prints every release that was asked for."""
    parser = argparse.ArgumentParser(prog="composites")
    parser.add_argument("--release", action="append", metavar="V")
    parser.add_argument("--list", action="store_true", help="every overload and its chain")
    options = parser.parse_args(arguments)
    for release in options.release or RELEASES:
        show(query.resolve_release(release), listed=options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
