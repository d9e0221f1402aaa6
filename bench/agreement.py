"""How far opdb's predictions agree with what PyTorch's own tests expect to fail on MPS.

    python bench/agreement.py [--macos 15] [--release V]… [--list] [--write | --check]

A row is an OpInfo entry with one dtype in one direction. *Positive* is a status that stops or
changes the result (unsupported, wrong, nan, crash), against an expected failure. A fallback that is
registered runs without a setting and gives the CPU's result, which PyTorch's tests accept. Rows
that PyTorch does not run, or opdb cannot judge, are counted apart, and so are those that
`bench/agreement.toml` excludes with a verified reason. An entry there that
fits no disagreement fails.
`--write` makes docs/agreement.md, `--check` fails where it is not current.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from opdb.coverage import Row, coverage
from opdb.upstream import Expected, expected

RELEASES = ("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
BOOK = Path(__file__).with_name("agreement.toml")
PAGE = Path(__file__).parents[1] / "docs" / "agreement.md"
MACOS = "15.5"
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

    @property
    def precision(self) -> float:
        """Of what opdb calls positive, how much the tests do; 0 without any."""
        return self.both / max(self.both + self.only_ours, 1)

    @property
    def recall(self) -> float:
        """Of what the tests call positive, how much opdb does; 0 without any."""
        return self.both / max(self.both + self.only_theirs, 1)

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}  recall {self.recall:.3f}  {tuple(self)}"


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


class Disagreement(NamedTuple):
    """A row that only one side calls positive."""

    release: str
    kind: str
    """`only ours` or `only theirs`."""
    row: Row
    cause: Cause | None


class Comparison(NamedTuple):
    """One release against its own tests."""

    release: str
    scores: dict[str, Score]
    """`float32 forward` and `all dtypes`."""
    apart: dict[str, Counter[str]]
    """For each of these, rows that do not count, by why: `skip`, `unknown`, `excluded`."""
    disagreements: list[Disagreement]


def main() -> int:
    """Prints two lines a release, and what differs when asked; or the page."""
    options = _options()
    causes = msgspec.toml.decode(BOOK.read_bytes(), type=Book).cause
    releases: Sequence[str] = options.release or RELEASES
    evidence = options.evidence.split(",")
    found = [
        compare(release, options.macos, list(coverage(release, options.macos, evidence)), causes)
        for release in releases
    ]
    left = [f"bench/agreement.toml: matches nothing: {each}" for each in unused(causes, found)]
    if options.write and not left:
        PAGE.write_text(page(found))
    if options.check and PAGE.read_text() != page(found):
        left.append("docs/agreement.md is not current; run `python bench/agreement.py --write`")
    print("\n".join([*shown(found, every=options.list), *left]))
    return 1 if left else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--macos", default=MACOS)
    parser.add_argument("--release", action="append")
    parser.add_argument("--evidence", default=",".join(EVIDENCE))
    parser.add_argument("--list", action="store_true", help="print every disagreement")
    parser.add_argument("--write", action="store_true", help="write docs/agreement.md")
    parser.add_argument("--check", action="store_true", help="fail where it is not current")
    options = parser.parse_args()
    chosen = options.release, options.macos, options.evidence
    if (options.write or options.check) and chosen != (None, MACOS, ",".join(EVIDENCE)):
        parser.error("the page is about the defaults of --release, --macos and --evidence")
    return options


def shown(found: Sequence[Comparison], *, every: bool) -> Iterator[str]:
    """Lines for people; with `every`, a line a disagreement too."""
    for each in found:
        for difference in each.disagreements if every else ():
            kind = difference.cause.kind if difference.cause else "unexplained"
            yield f"  {kind}: {difference.kind}: {spelled(difference.row)}"
        for scope, score in each.scores.items():
            apart = each.apart[scope]
            yield (
                f"{each.release} {scope:16} {score}  not run {apart['skip']}, "
                f"unknown {apart['unknown']}, excluded {apart['excluded']}"
            )


def unused(causes: Sequence[Cause], found: Sequence[Comparison]) -> list[str]:
    """Releases that a cause names and fits nothing in; entries that fit nothing in any of them.

    Of entries nothing is said unless all those releases were compared.
    """
    ran = {each.release for each in found}
    different = [each for comparison in found for each in comparison.disagreements]
    left: list[str] = []
    for cause in causes:
        mine = [each for each in different if each.cause == cause]
        names = {f"{each.row.name}.{each.row.variant}" for each in mine}
        there = {each.release for each in mine}
        who = ", ".join(cause.entries)
        left += [f"{who} in {each}" for each in cause.releases if each in ran - there]
        if ran.issuperset(cause.releases):
            left += [f"{entry} ({cause.cause})" for entry in cause.entries if entry not in names]
    return left


def compare(release: str, macos: str, rows: Sequence[Row], causes: Sequence[Cause]) -> Comparison:
    """One release against its own tests."""
    known = expected(release, macos)
    assert known is not None, release
    kinds = {"float32 forward": Counter[str](), "all dtypes": Counter[str]()}
    different: list[Disagreement] = []
    for row in rows:
        if row.dtype not in TESTED:
            continue
        kind, cause = judged(release, row, known, causes)
        kinds["all dtypes"][kind] += 1
        if (row.dtype, row.direction) == ("float32", "forward"):
            kinds["float32 forward"][kind] += 1
        if cause or kind.startswith("only"):
            theirs = known.of(row.name, row.variant, row.dtype, row.direction)
            different.append(Disagreement(release, classify(row, theirs), row, cause))
    return Comparison(release, {k: scored(v) for k, v in kinds.items()}, kinds, different)


def scored(kinds: Counter[str]) -> Score:
    """Of rows by kind."""
    return Score(*(kinds[k] for k in ("both", "only ours", "only theirs", "neither")))


def judged(
    release: str, row: Row, known: Expected, causes: Sequence[Cause]
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


_INTRODUCTION = """# Agreement with PyTorch's own expected failures

Wheels from 2.8 on contain `torch/testing/_internal/common_mps.py`: which entries of OpInfo
PyTorch's own tests expect to fail on MPS. `bench/agreement.py` holds what `opscan db coverage`
says against it, for macOS 15, with evidence *database*, *simulated* and *inferred* only. This page
is made by `python bench/agreement.py --write`.

A row is an entry with one dtype in one direction. *Positive* is *unsupported*, *wrong*, *nan* or
*crash*, against an expected failure; a fallback that is registered gives the CPU's result, which
the tests accept. Rows that are not run, or that opdb cannot judge, are left out, and so are
*excluded* ones: where `bench/agreement.toml` says that the tests are wrong or fail for a reason of
their own. What is *ours* or has *no known cause* counts.
"""


def page(found: Sequence[Comparison]) -> str:
    """docs/agreement.md."""
    head = "| torch | rows | precision | recall | both | only opdb | only tests | excluded |\n"
    lines = [
        f"| {each.release} | {scope} | {score.precision:.3f} | {score.recall:.3f} | {score.both} "
        f"| {score.only_ours} | {score.only_theirs} | {each.apart[scope]['excluded']} |\n"
        for each in found
        for scope, score in each.scores.items()
    ]
    figures = head + "|---|---|---|---|---|---|---|---|\n" + "".join(lines)
    return f"{_INTRODUCTION}\n{figures}\n## What disagrees\n\n{_table(found)}"


def _table(found: Sequence[Comparison]) -> str:
    """A line for each entry and direction that disagrees for the same cause."""
    groups: dict[tuple[str, str, str, Cause | None], tuple[list[str], list[str]]] = {}
    for each in (each for comparison in found for each in comparison.disagreements):
        name = f"{each.row.name}.{each.row.variant}".rstrip(".")
        key = (name, each.row.direction, each.kind, each.cause)
        for names, value in zip(
            groups.setdefault(key, ([], [])), (each.row.dtype, each.release), strict=True
        ):
            names.extend([value] if value not in names else [])
    head = "| entry | direction | who | dtypes | torch | counts | cause |\n" + "|---" * 7 + "|\n"
    rows = sorted(groups.items(), key=lambda item: item[0][:3])
    return head + "".join(
        f"| `{name}` | {direction} | {kind.replace('ours', 'opdb').replace('theirs', 'tests')} "
        f"| {', '.join(dtypes)} | {', '.join(releases)} | {_because(cause)} |\n"
        for (name, direction, kind, cause), (dtypes, releases) in rows
    )


def _because(cause: Cause | None) -> str:
    if cause is None:
        return "yes | not known"
    counts = "yes" if cause.kind == "ours" else f"no: {cause.kind}"
    return f"{counts} | {' '.join(filter(None, (cause.cause, cause.verified)))}"


if __name__ == "__main__":
    sys.exit(main())
