"""Scans that are cut short and taken up again, and workers that others kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scanner.probe.limits import Launch
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.store import open_store
from scanner.probe.supervisor import probe

from .iso_fakes import QUICK, RUNNER, Watcher, among_others, fine, outcomes

HERE = str(Path(__file__).parents[2])


def test_a_resumed_scan_repeats_nothing(tmp_path: Path) -> None:
    log, journal = tmp_path / "log", tmp_path / "journal"
    options = {"log": str(log)}
    calls = among_others("abort")
    launch = Launch(workers=1, runner=RUNNER)
    scan = probe(calls, "cpu", options, launch=launch, limits=QUICK, journal=journal)
    seen = [next(scan) for _ in range(3)]
    scan.close()
    ran = log.read_text()
    watcher = Watcher()
    found = outcomes(calls, options=options, journal=journal, observer=watcher)
    assert watcher.reused >= 3
    assert found == outcomes(calls, options=options, journal=journal)
    assert found["abort 0"].status == "crash"
    again = log.read_text()[len(ran) :]
    for each in seen:
        assert f"fine {each.detail['number']}\n" not in again


def test_a_finished_scan_starts_no_case(tmp_path: Path) -> None:
    log, journal = tmp_path / "log", tmp_path / "journal"
    options = {"log": str(log)}
    first = outcomes(fine(5), options=options, journal=journal)
    size = log.stat().st_size
    assert outcomes(fine(5), options=options, journal=journal) == first
    assert log.stat().st_size == size


def test_other_options_are_another_scan(tmp_path: Path) -> None:
    log, journal = tmp_path / "log", tmp_path / "journal"
    outcomes(fine(2), options={"log": str(log)}, journal=journal)
    watcher = Watcher()
    outcomes(fine(2), options={"log": str(log), "x": 1}, journal=journal, observer=watcher)
    assert watcher.notices == [f"{journal} belonged to another scan and starts anew."]
    assert len(log.read_text().splitlines()) == 4


def test_the_store_serves_later_scans(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"log": str(log)}
    store, _ = open_store(tmp_path / "store")
    with store:
        first = outcomes(among_others("abort", "breaks"), options=options, store=store)
        log.write_text("")
        watcher = Watcher()
        again = outcomes(
            among_others("abort", "breaks"), options=options, store=store, observer=watcher
        )
        # What could not be judged is tried again; everything else is known.
        assert watcher.reused == 9
        assert [line.split()[1] for line in log.read_text().splitlines()] == ["breaks"]
        strip = {name: each.status for name, each in first.items()}
        assert {name: each.status for name, each in again.items()} == strip


def test_workers_end_when_the_scan_is_left(tmp_path: Path) -> None:
    log = tmp_path / "log"
    launch = Launch(workers=1, runner=RUNNER)
    scan = probe(fine(50), "cpu", {"log": str(log), "pause": 0.01}, launch=launch, limits=QUICK)
    next(scan)
    pid = int(log.read_text().split()[0])
    scan.close()
    assert gone(pid)


SCAN = """
import signal
import sys
# A shell that starts the tests in the background has them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from tests.probe.iso_fakes import fine, outcomes
outcomes(fine(200), options={"log": sys.argv[1], "pause": 0.004}, journal=Path(sys.argv[2]))
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_scan_takes_its_workers_along_and_is_resumed(
    tmp_path: Path, blow: signal.Signals
) -> None:
    log, journal = tmp_path / "log", tmp_path / "journal"
    process = subprocess.Popen(
        [sys.executable, "-c", SCAN, str(log), str(journal)],
        env={**os.environ, "PYTHONPATH": HERE},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: log.exists() and log.read_text().count("\n") > 20)
    process.send_signal(blow)
    process.wait()
    pid = int(log.read_text().split()[0])
    until(lambda: gone(pid))
    ran = log.read_text()
    options = {"log": str(log), "pause": 0.004}
    found = outcomes(fine(200), options=options, journal=journal)
    assert [each.detail["number"] for each in found.values()] == list(range(200))
    # The worker may run ahead by what it has been given while the journal is brought to disk.
    runs = [line.split()[2] for line in log.read_text().splitlines()]
    assert len(runs) - len(set(runs)) <= 16
    assert len(log.read_text()) > len(ran)


@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_random_change_no_result(tmp_path: Path, seed: int) -> None:
    log = tmp_path / "log"
    calls = fine(60)
    launch = Launch(workers=2, runner=RUNNER)
    options = {"log": str(log), "pause": 0.004}
    found: dict[str, Outcome] = {}
    for number, each in enumerate(probe(calls, "cpu", options, launch=launch, limits=QUICK)):
        found[each.key] = each
        if number % 17 == seed:
            pid = int(log.read_text().splitlines()[-1].split()[0])
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)
    assert [found[config_key(each)].detail["number"] for each in calls] == list(range(60))
    assert {each.status for each in found.values()} == {"native"}


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


def until(condition: object, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)
