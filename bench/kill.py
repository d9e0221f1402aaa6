"""Kills workers and supervisors at random moments and compares what is left with a quiet run.

    python bench/kill.py --kills 100 --seed 0

A scan of a drill (one op aborts, one gives NaN, the rest is sound) is run undisturbed. Then it is
run over and over; each time, after a random delay, either the supervisor or one of its workers is
killed with SIGKILL. A killed supervisor is started again on the same journal. When a scan comes to
its end, every outcome must equal the undisturbed one.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from drill import NAMES

from scanner.probe.journal import Journal
from scanner.probe.limits import Launch
from scanner.probe.protocol import Outcome
from scanner.probe.supervisor import probe
from scanner.records import OpCall

DEVICE = "drill:abort=aten::mm,nan=aten::exp,exit=aten::_softmax,fallback=aten::tanh"
RUNS = re.compile(r" \(\d+ of \d+ runs\)")
TIMES = re.compile(r"[\d.,]+ (?:ns|µs|ms|s)\b")


def main() -> int:
    """Run the bench; exit 1 when any outcome differs."""
    options = _options()
    if options.scan is not None:
        return _scan(options.scan)
    with tempfile.TemporaryDirectory() as name:
        return _bench(Path(name), options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delay", type=float, default=6.0, help="longest, in seconds")
    parser.add_argument("--scan", type=Path, help="(internal) folder to scan in")
    return parser.parse_args()


def _scan(folder: Path) -> int:
    """The process that is to be killed."""
    lines = (folder / "calls.jsonl").read_bytes().splitlines()
    calls = [msgspec.json.decode(line, type=OpCall) for line in lines]
    for _ in probe(calls, DEVICE, {}, launch=Launch(workers=2), journal=folder / "journal"):
        pass
    return 0


def _bench(folder: Path, options: argparse.Namespace) -> int:
    _write_calls(folder / "calls.jsonl")
    start = time.monotonic()
    _start(folder).wait()
    quiet = _outcomes(folder)
    print(f"undisturbed: {len(quiet)} configurations, {time.monotonic() - start:.0f} s")
    print(f"  {dict(Counter(each.status for each in quiet.values()))}")
    rng = random.Random(options.seed)
    killed: Counter[str] = Counter()
    scans = different = 0
    while sum(killed.values()) < options.kills:
        (folder / "journal").unlink()
        _disturb(folder, rng, options, killed)
        scans += 1
        different += _compare(quiet, _outcomes(folder))
        print(f"  scan {scans}: {dict(killed)}, {different} different", flush=True)
    print(f"killed: {dict(killed)}; {scans} scans came to their end")
    print(f"outcomes that differ from the undisturbed run's: {different}")
    return int(different > 0)


def _write_calls(path: Path) -> None:
    command = [sys.executable, "-m", "scanner.probe.opinfo", "--samples", "2", *NAMES]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    calls = [msgspec.json.decode(line)["call"] for line in lines]
    path.write_bytes(b"".join(msgspec.json.encode(call) + b"\n" for call in calls))


def _start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "--scan", str(folder)])


def _disturb(
    folder: Path, rng: random.Random, options: argparse.Namespace, killed: Counter[str]
) -> None:
    """One scan to its end, killed and resumed on the way as long as kills are left."""
    process = _start(folder)
    while sum(killed.values()) < options.kills:
        if _ends(process, rng.uniform(0, options.delay)):
            break
        workers = _children(process.pid)
        if workers and rng.random() < 0.5:
            _kill(rng.choice(workers))
            killed["workers"] += 1
        else:
            process.kill()
            process.wait()
            killed["supervisors"] += 1
            process = _start(folder)
    if process.wait():
        raise SystemExit(f"a supervisor died by itself: {process.returncode}")


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _children(pid: int) -> list[int]:
    listing = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listing.stdout.split()]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _outcomes(folder: Path) -> dict[str, Outcome]:
    journal = folder / "journal"
    scope = msgspec.json.decode(journal.read_bytes().splitlines()[0])["scope"]
    with Journal(journal, scope) as opened:
        return dict(opened.outcomes)


def _compare(quiet: dict[str, Outcome], disturbed: dict[str, Outcome]) -> int:
    different = 0
    for key in quiet.keys() | disturbed.keys():
        ours, theirs = _essence(quiet.get(key)), _essence(disturbed.get(key))
        if ours != theirs:
            different += 1
            print(f"    {str(ours)[:300]}\n    {str(theirs)[:300]}")
    return different


def _essence(outcome: Outcome | None) -> Any:
    """All but what was timed, and how often a worker had to die for it to be known."""
    if outcome is None:
        return None
    death = outcome.death and (outcome.death.kind, outcome.death.what, outcome.death.alone)
    reason = TIMES.sub("", RUNS.sub("", outcome.reason))
    detail = dict(outcome.detail)
    if cost := detail.get("fallback_cost"):
        detail["fallback_cost"] = {key: cost[key] for key in ("bytes_out", "bytes_back")}
    plain = msgspec.structs.replace(outcome, seconds=0.0, death=None, reason=reason, detail=detail)
    return msgspec.to_builtins(plain), death


if __name__ == "__main__":
    sys.exit(main())
