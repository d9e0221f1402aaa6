"""Times `opscan --static` beside bandit and pylint on one tree, in one run.

    python bench/static.py TREE --bandit BIN/bandit --pylint BIN/pylint

Each is run as it is fastest: bandit with one test, pylint with one check of syntax trees and as
many jobs as there are processors. opscan runs twice on an empty cache folder: cold, then warm.
Last, one file of about 500 lines as a hook gets it, beside `python -c pass`. Seconds on the clock
depend on what else the machine does; processor seconds, of all processes together, hardly do.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OPSCAN = [sys.executable, "-m", "scanner"]
_HOOKS = 15


class Took(NamedTuple):
    """One run."""

    clock: float
    processor: float
    code: int
    lines: int


def main() -> int:
    """Print one line for each tool."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
        files = list(options.tree.rglob("*.py"))
        print(f"{options.tree.name}: {len(files)} files, {_lines(files):,} lines")
        static = [*OPSCAN, "--static", str(options.tree), "-f", "concise"]
        cold, warm = (_run(static, environment) for _ in range(2))
        _say("opscan, cold", cold)
        _say("opscan, warm", warm)
        print(f"  warm is {cold.clock / warm.clock:.0f} times as fast by the clock, ", end="")
        print(f"{cold.processor / warm.processor:.0f} times by the processor")
        for name, command in _others(options):
            _say(name, _run(command, environment))
        _hook(min(files, key=_unlike_500), environment)
    return 0


def _others(options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    jobs = str(os.cpu_count() or 1)
    tree = str(options.tree)
    found = []
    if options.bandit:
        found.append(("bandit, one test", [options.bandit, "-q", "-r", tree, "-t", "B102"]))
    if options.pylint:
        one = ["--disable=all", "--enable=exec-used", "--rcfile=", "-j", jobs]
        found.append(("pylint, one check", [options.pylint, *one, tree]))
    return found


def _hook(file: Path, environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(file, folder)
        hook = [*OPSCAN, "--static", f"{folder}/{file.name}", "-f", "concise"]
        runs = [(_run([sys.executable, "-c", "pass"], environment), _run(hook, environment))]
        runs += [
            (_run([sys.executable, "-c", "pass"], environment), _run(hook, environment))
            for _ in range(_HOOKS)
        ]
    for what in ("clock", "processor"):
        bare = statistics.median(getattr(each, what) for each, _ in runs)
        hooked = statistics.median(getattr(each, what) for _, each in runs)
        print(
            f"hook on {file.name} ({_lines([file])} lines), {what}: {hooked * 1e3:.0f} ms, "
            f"python -c pass {bare * 1e3:.0f} ms: {hooked / bare:.1f} times"
        )


def _run(command: list[str], environment: dict[str, str]) -> Took:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(clock, processor, done.returncode, done.stdout.count(b"\n"))


def _lines(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def _unlike_500(file: Path) -> tuple[int, str]:
    """How far a file is from 500 lines; without torch in it, very far."""
    torch = b"import torch" in file.read_bytes()
    return abs(_lines([file]) - 500) if torch else sys.maxsize, file.name


def _say(name: str, took: Took) -> None:
    print(
        f"{name:18} {took.clock:7.2f} s by the clock, {took.processor:7.2f} s of processors; "
        f"exit {took.code}, {took.lines} lines of output",
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--bandit", metavar="PROGRAM")
    parser.add_argument("--pylint", metavar="PROGRAM")
    return parser


if __name__ == "__main__":
    sys.exit(main())
