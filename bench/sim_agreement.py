"""Execution alone against what PyTorch's own tests expect to fail on MPS.

    python bench/sim_agreement.py [--expected FILE] [--narrow] [--list] [folder of kept sweeps]

FILE is opdb's table of those expectations, `upstream.tsv`: tab-separated lines of entry, direction,
`xfail` or `skip` or `pass`, dtypes, macOS versions, releases.

A row is an OpInfo entry with one dtype, forward. *Positive* is an entry with a sampled call that
raises or falls back. `--narrow` leaves out calls in which a float64 takes part: the CPU makes some
(tolerances) where a device would be asked for float32.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from opdb import intervals, store
from opdb.build.execution.build import default_folder
from opdb.build.execution.observation import Header, Observation, read

Lines = dict[str, list[list[str]]]
POSITIVE = {"raises", "fallback"}


def main() -> None:
    """Prints a line for each release and dtype, and what differs when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder())
    parser.add_argument("--expected", type=Path, default=store.default.folder / "upstream.tsv")
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    lines = options.expected.read_text("utf-8").splitlines()[2:]
    for path in sorted(options.folder.glob("*/*.jsonl")):
        header, rows = read(path)
        if not (known := _known(header, lines)):
            continue
        counts: Counter[str] = Counter()
        for entry, calls in _by_entry(rows, narrow=options.narrow).items():
            kind = _kind(_expectation(entry, known), calls)
            counts[kind] += 1
            if options.list and kind.startswith("only"):
                print(f"  {kind}: {entry} {header.dtype}")
        print(f"{header.release} {header.dtype}: {_score(counts)}")


def _by_entry(rows: list[Observation], *, narrow: bool) -> dict[str, list[Observation]]:
    found: defaultdict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        if row.layout == "sampled" and not (narrow and row.wide):
            found[row.entry].append(row)
    return found


def _known(header: Header, lines: list[str]) -> Lines:
    """Entry → its lines about forward calls of the sweep's dtype, release and macOS."""
    place, major = store.default.places[header.release], header.macos.partition(".")[0]
    found: Lines = {}
    for line in lines:
        entry, direction, kind, dtypes, systems, releases = line.split("\t")
        if direction != "forward" or major not in {s.partition(".")[0] for s in systems.split(",")}:
            continue
        if intervals.contains(releases, place, store.default.places):
            about = dtypes == "*" or header.dtype in dtypes.split(",")
            found.setdefault(entry, []).append([kind] if about else [])
    return found


def _expectation(entry: str, known: Lines) -> str:
    """PyTorch joins name and variant without a dot. Entries without a line have those of `*`."""
    name, _, variant = entry.rpartition(".")
    lines = known.get(name + variant, known.get(entry, known.get("*", [])))
    kinds = {kind for line in lines for kind in line}
    return "skip" if "skip" in kinds else "xfail" if "xfail" in kinds else "pass"


def _kind(theirs: str, calls: list[Observation]) -> str:
    outcomes = {call.outcome for call in calls}
    if theirs == "skip":
        return "not run"
    if outcomes & POSITIVE:
        return "both" if theirs == "xfail" else "only ours"
    if "unknown" in outcomes:
        return "unknown"
    return "only theirs" if theirs == "xfail" else "neither"


def _score(counts: Counter[str]) -> str:
    precision = counts["both"] / max(counts["both"] + counts["only ours"], 1)
    recall = counts["both"] / max(counts["both"] + counts["only theirs"], 1)
    kinds = ("both", "only ours", "only theirs", "neither", "not run", "unknown")
    listed = ", ".join(f"{kind} {counts[kind]}" for kind in kinds)
    return f"precision {precision:.3f}  recall {recall:.3f}  ({listed})"


if __name__ == "__main__":
    main()
