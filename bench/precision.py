"""How many findings of the source rules are right, by hand: `bench/precision.tsv`.

`python bench/precision.py FOLDER [--seed N] [--files N] [--count N]` draws files of packages that
were unpacked below FOLDER, each as NAME-VERSION, then findings in them, and writes those that
nobody has judged yet with `?`.
Judge them in the file: `right` or `wrong`, and why. Judgements of earlier samples are kept where a
finding is drawn again. Without a folder it counts, and fails below 95 % or when one is not judged.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scanner.records import Finding, Target  # noqa: E402
from scanner.source.discover import source_files  # noqa: E402
from scanner.source.scan import SourcePlan, scan_files  # noqa: E402

TABLE = ROOT / "bench" / "precision.tsv"
WANTED = 0.95
TARGET = Target(framework="torch", version="2.15.0")
_HEAD = ("package", "version", "file", "line", "rule", "judgement", "why")


class Judged(NamedTuple):
    """One finding, and what a reader thinks of it."""

    package: str
    version: str
    file: str
    line: str
    rule: str
    judgement: str = "?"
    why: str = ""


def main() -> int:
    """Draw a sample, or count the judgements of the one there is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seed", type=int, default=20261208)
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    if options.folder is None:
        return _count(read())
    known = {row[:5]: row for row in read()} if TABLE.exists() else {}
    drawn = sample(options.folder, options.seed, options.files, options.count)
    rows = sorted(known.get(row[:5], row) for row in drawn)
    text = "\n".join("\t".join(row) for row in [_HEAD, *rows])
    TABLE.write_text(f"{text}\n")
    return 0


def read() -> list[Judged]:
    """The rows of the table."""
    lines = TABLE.read_text().splitlines()[1:]
    return [Judged(*line.split("\t")) for line in lines]


def sample(folder: Path, seed: int, number: int, count: int) -> list[Judged]:
    """Findings drawn at random from what the rules say of files that are drawn at random."""
    draw = random.Random(seed)
    found = source_files(["."], str(folder))
    files = draw.sample(found, min(number, len(found)))
    scanned = scan_files(files, SourcePlan(targets=(TARGET,), processes=2))
    every = sorted(set(_rows(scanned.source.findings)))
    return draw.sample(every, min(count, len(every)))


def _rows(findings: Iterable[Finding]) -> Iterator[Judged]:
    for each in findings:
        place = each.location
        if place is None or not each.rule.startswith("OPS6"):
            continue
        package, _, file = place.file.partition("/")
        name, _, version = package.rpartition("-")
        yield Judged(name, version, file, str(place.line), each.rule)


def _count(rows: list[Judged]) -> int:
    told = Counter(row.judgement for row in rows)
    share = told["right"] / len(rows)
    print(f"{told['right']} of {len(rows)} findings are right: {share:.0%}")
    wrong = Counter(row.rule for row in rows if row.judgement != "right")
    for rule, number in sorted(wrong.items()):
        print(f"  {rule}: {number} not")
    return 0 if share >= WANTED and not told["?"] else 1


if __name__ == "__main__":
    sys.exit(main())
