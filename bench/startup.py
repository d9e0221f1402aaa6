"""Start-up of opscan against the bare interpreter, as whole processes: `python bench/startup.py`.

The commands take turns, so that a slow moment of the machine hits all of them; medians are
compared. Limits: --version at most 2 times `python -c pass`, `db op` at most 5 times.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

OPSCAN = str(Path(sys.executable).with_name("opscan"))
BARE = [sys.executable, "-c", "pass"]
COMMANDS = {
    "python -c pass": (BARE, 1.0),
    "opscan --version": ([OPSCAN, "--version"], 2.0),
    "opscan db op": ([OPSCAN, "db", "op", "aten::kthvalue.values", "--torch", "2.5.1"], 5.0),
    "opscan db op -f json": (
        [OPSCAN, "db", "op", "aten::kthvalue.values", "--torch", "2.5.1", "-f", "json"],
        5.0,
    ),
    "opscan explain OPS101": ([OPSCAN, "explain", "OPS101"], float("inf")),
    "opscan --help": ([OPSCAN, "--help"], float("inf")),
}
ROUNDS = 60


def seconds(command: list[str]) -> float:
    """Wall time of one process, its output thrown away."""
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def main() -> int:
    """Print a table; 1 when a limit is passed."""
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, (command, _limit) in COMMANDS.items():
            samples[name].append(seconds(command))
    bare = statistics.median(samples["python -c pass"])
    slow = 0
    for name, (_command, limit) in COMMANDS.items():
        median = statistics.median(samples[name])
        low, *_, high = statistics.quantiles(samples[name], n=10)
        ratio = median / bare
        slow += ratio > limit
        print(
            f"{name:24} {median * 1e3:6.1f} ms  p10 {low * 1e3:5.1f}  p90 {high * 1e3:5.1f}", end=""
        )
        print(f"  x{ratio:.2f}" + (f" (limit {limit:g})" if limit < float("inf") else ""))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
