"""Figures of kept sweeps: what releases did with PyTorch's own samples, and what differs.

    python -m opdb.build torch-sim                   # sweeps what is not kept yet
    python bench/sim_figures.py [--list] [folder]    # default: where the command above keeps them

A row counts calls as sampled. *Failed* are calls of which the emulator cannot even say what the
release's code chose. *Executed* is the share of the native calls whose results were computed.
`--list` names every call that differs, failed, or was not executed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from opdb.build.execution.build import DTYPES, default_folder
from opdb.build.execution.observation import Observation, read
from opdb.build.releases import RELEASES

HEADS = ("release, dtype", "calls", "shader", "graph", "fallback", "raises", "unknown")
HEADS += ("failed", "executed", "values agree", "random", "differ")
OUTCOMES = ("native-shader", "native-graph", "fallback", "raises", "unknown")
AGREES = {"agrees", "as good", "closer"}


def main() -> None:
    """Prints a table in Markdown, and what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder())
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    print("|" + "|".join(f" {head} " for head in HEADS) + "|")
    print("|---" * len(HEADS) + "|")
    kept = list(_files(options.folder))
    for path in kept:
        header, rows = read(path)
        print(_line(f"{header.release} {header.dtype}", rows))
    for path in kept if options.list else ():
        _list(path)


def _files(folder: Path) -> Iterator[Path]:
    """Newest release first, dtypes in the order of the sweep."""
    homes = sorted(folder.iterdir(), key=lambda home: -RELEASES.index(home.name.split("@")[0]))
    for home in homes:
        yield from (path for d in DTYPES if (path := home / f"{d}.jsonl").exists())


def _line(name: str, rows: list[Observation]) -> str:
    rows = _sampled(rows)
    outcomes = Counter(row.outcome for row in rows)
    native = [row for row in rows if row.path.startswith("native")]
    executed = sum(row.outcome == row.path for row in native) / max(len(native), 1)
    values = [row.value.split("[")[0].split(":")[0] for row in rows if row.value]
    agree = sum(value in AGREES for value in values)
    differ = sum(value in {"differs", "metadata"} for value in values)
    cells = [name, f"{len(rows):,}", *(f"{outcomes[each]:,}" for each in OUTCOMES)]
    cells += [str(sum(row.path == "unknown" for row in rows)), f"{executed:.2%}"]
    cells += [f"{agree:,}", str(values.count("random")), str(differ)]
    return "| " + " | ".join(cells) + " |"


def _list(path: Path) -> None:
    header, rows = read(path)
    seen: Counter[str] = Counter()
    for row in _sampled(rows):
        if row.value.startswith(("differs", "metadata")):
            seen[f"{row.op} ({row.entry}): {row.value}"] += 1
        elif row.outcome == "unknown":
            kind = "failed" if row.path == "unknown" else "not executed"
            seen[f"{row.op} ({row.entry}): {kind}: {row.message}"] += 1
    for text, count in sorted(seen.items()):
        print(f"{header.release} {header.dtype} {count}x {text}")


def _sampled(rows: list[Observation]) -> list[Observation]:
    return [row for row in rows if row.layout == "sampled"]


if __name__ == "__main__":
    main()
