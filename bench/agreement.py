"""How far opdb's predictions agree with what PyTorch's own tests expect to fail on MPS.

    python bench/agreement.py [--macos 15] [--release V]… [--list]

A row is an OpInfo entry with one dtype in one direction. *Positive* is a status that stops or
changes the result (unsupported, wrong, nan, crash), against an expected failure. A fallback that is
registered runs without a setting and gives the CPU's result, which PyTorch's tests accept. Rows
that PyTorch does not run, or opdb cannot judge, are counted apart, and so are those that
`bench/agreement.toml` excludes with a verified reason. A reason that fits no disagreement fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from opdb.coverage import Row, coverage
from opdb.upstream import Expected, expected

RELEASES = ("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
BOOK = Path(__file__).with_name("agreement.toml")
EVIDENCE = ("database", "simulated", "inferred")
POSITIVE = {"unsupported", "wrong", "nan", "crash"}
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


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why rows of some entries disagree."""

    entries: tuple[str, ...]
    """OpInfo's name, a dot and the variant: `softmax.with_dtype`, `to.`."""
    releases: tuple[str, ...] = RELEASES
    dtypes: tuple[str, ...] = ()
    """None: every dtype."""
    direction: Literal["forward", "gradient", "both"] = "both"
    kind: Literal["upstream-wrong", "test-artefact", "ours"]
    cause: str
    """One sentence."""
    verified: str
    """How it is known; empty only for `ours`."""

    def about(self, release: str, row: Row) -> bool:
        """Whether it speaks of a row of a release."""
        return (
            f"{row.name}.{row.variant}" in self.entries
            and release in self.releases
            and (not self.dtypes or row.dtype in self.dtypes)
            and self.direction in {"both", row.direction}
        )


class Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    cause: tuple[Cause, ...]


def main() -> None:
    """Prints two lines a release, and what differs when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--macos", default="15.5")
    parser.add_argument("--release", action="append")
    parser.add_argument("--evidence", default=",".join(EVIDENCE))
    parser.add_argument("--list", action="store_true", help="print every disagreement")
    options = parser.parse_args()
    causes = msgspec.toml.decode(BOOK.read_bytes(), type=Book).cause
    used: set[tuple[Cause, str]] = set()
    releases: Sequence[str] = options.release or RELEASES
    for release in releases:
        rows = list(coverage(release, options.macos, options.evidence.split(",")))
        used |= compare(release, options.macos, rows, causes, show=options.list)
    if left := unused(causes, used, releases):
        sys.exit("\n".join(f"bench/agreement.toml: matches nothing: {each}" for each in left))


def unused(
    causes: tuple[Cause, ...], used: set[tuple[Cause, str]], ran: Sequence[str]
) -> list[str]:
    """Causes with a release in which nothing disagrees as they say."""
    return [
        f"{', '.join(cause.entries)} in {release}"
        for cause in causes
        for release in cause.releases
        if release in ran and (cause, release) not in used
    ]


def compare(
    release: str, macos: str, rows: list[Row], causes: tuple[Cause, ...], *, show: bool
) -> set[tuple[Cause, str]]:
    """One release against its own tests; the causes that some disagreement has."""
    known = expected(release, macos)
    assert known is not None, release
    used: set[tuple[Cause, str]] = set()
    forward = [row for row in rows if (row.dtype, row.direction) == ("float32", "forward")]
    tested = [row for row in rows if row.dtype in TESTED]
    for scope, wanted in {"float32 forward": forward, "all dtypes": tested}.items():
        kinds: Counter[str] = Counter()
        for row in wanted:
            kind, cause = judged(release, row, known, causes)
            kinds[kind] += 1
            used |= {(cause, release)} if cause else set()
            if show and (cause or kind.startswith("only")):
                print(f"  {cause.kind if cause else 'unexplained'}: {kind}: {spelled(row)}")
        score = Score(*(kinds[k] for k in ("both", "only ours", "only theirs", "neither")))
        print(
            f"{release} {scope:16} {score}  not run {kinds['skip']}, unknown {kinds['unknown']}, "
            f"excluded {kinds['excluded']}"
        )
    return used


def judged(
    release: str, row: Row, known: Expected, causes: tuple[Cause, ...]
) -> tuple[str, Cause | None]:
    """How a row counts, and the cause that the data file gives for a disagreement."""
    kind = classify(row, known.of(row.name, row.variant, row.dtype, row.direction))
    if not kind.startswith("only"):
        return kind, None
    cause = next((each for each in causes if each.about(release, row)), None)
    return (kind if cause is None or cause.kind == "ours" else "excluded"), cause


def spelled(row: Row) -> str:
    """A row for people."""
    chain = " > ".join(row.chain)
    return f"{row.name}.{row.variant} {row.dtype} {row.direction} {row.status} {chain}"


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
