"""How far opdb's predictions agree with what PyTorch's own tests expect to fail on MPS.

    python bench/agreement.py [--macos 15] [--release V]… [--list]

A row is an OpInfo entry with one dtype in one direction. *Positive* is a status that stops or
changes the result (unsupported, fallback, wrong, nan, crash), against an expected failure. Rows
that PyTorch does not run, or opdb cannot judge, are counted apart.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import NamedTuple

from opdb.coverage import Row, coverage
from opdb.upstream import expected

RELEASES = ("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
EVIDENCE = ("database", "simulated", "inferred")
POSITIVE = {"unsupported", "fallback", "wrong", "nan", "crash"}
TESTED = {"float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"}
TESTED |= {"complex64", "float64"}


class Score(NamedTuple):
    """Rows by who calls them positive."""

    both: int
    only_ours: int
    only_theirs: int
    neither: int

    def __str__(self) -> str:
        precision = self.both / max(self.both + self.only_ours, 1)
        recall = self.both / max(self.both + self.only_theirs, 1)
        return f"precision {precision:.3f}  recall {recall:.3f}  {tuple(self)}"


def main() -> None:
    """Prints two lines a release, and what differs when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--macos", default="15.5")
    parser.add_argument("--release", action="append")
    parser.add_argument("--evidence", default=",".join(EVIDENCE))
    parser.add_argument("--list", action="store_true", help="print every disagreement")
    options = parser.parse_args()
    for release in options.release or RELEASES:
        rows = list(coverage(release, options.macos, options.evidence.split(",")))
        compare(release, options.macos, rows, show=options.list)


def compare(release: str, macos: str, rows: list[Row], *, show: bool) -> None:
    """One release against its own tests."""
    known = expected(release, macos)
    assert known is not None, release
    kinds: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {"only ours": [], "only theirs": []}
    for scope, wanted in {
        "float32 forward": [r for r in rows if (r.dtype, r.direction) == ("float32", "forward")],
        "all dtypes": [r for r in rows if r.dtype in TESTED],
    }.items():
        kinds.clear()
        for each in wrong.values():
            each.clear()
        for row in wanted:
            theirs = known.of(row.name, row.variant, row.dtype, row.direction)
            kind = classify(row, theirs)
            kinds[kind] += 1
            if kind in wrong:
                wrong[kind].append(
                    f"{row.name}.{row.variant} {row.dtype} {row.direction} "
                    f"{row.status} {' > '.join(row.chain)}"
                )
        score = Score(*(kinds[k] for k in ("both", "only ours", "only theirs", "neither")))
        print(f"{release} {scope:16} {score}  not run {kinds['skip']}, unknown {kinds['unknown']}")
        for kind, lines in wrong.items() if show else ():
            for line in lines:
                print(f"  {kind}: {line}")


def classify(row: Row, theirs: str) -> str:
    """Who calls a row positive, or why it does not count."""
    if theirs == "skip":
        return "skip"
    if row.status == "unknown":
        return "unknown"
    ours = row.status in POSITIVE
    if ours:
        return "both" if theirs == "xfail" else "only ours"
    return "only theirs" if theirs == "xfail" else "neither"


if __name__ == "__main__":
    main()
