"""A scan that is cut short repeats nothing when it is run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from scanner.probe import session
from scanner.probe.journal import Journal
from scanner.probe.keeping import Keeping
from scanner.probe.limits import Launch
from scanner.probe.measure import measure
from scanner.probe.observer import Observer, Progress, Remembering
from scanner.probe.store import open_store
from scanner.records import Measurement, OpCall, TensorSpec

from .iso_fakes import RUNNER

ROOT = Path(__file__).parents[2]


def fine(number: int) -> OpCall:
    spec = TensorSpec(name="self", dtype="float32", shape=(3,), stride=(1,))
    attributes = {"number": number}
    return OpCall(op="fake::fine", phase="forward", inputs=(spec,), attributes=attributes)


CALLS = [fine(number) for number in range(40)]


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "Launch", partial(Launch, workers=1, runner=RUNNER))


class Watch(Observer):
    """Counts, and ends the scan after so many results."""

    def __init__(self, after: int | None = None, blow: Callable[[], object] | None = None) -> None:
        self.reused = 0
        self.notices: list[str] = []
        self._after = after
        self._blow = blow or _ctrl_c

    def ready(self, facts: object, total: int, reused: int) -> None:
        del facts, total
        self.reused = reused

    def progress(self, progress: Progress) -> None:
        if self._after is not None and progress.done - self.reused >= self._after:
            self._blow()

    def notice(self, text: str) -> None:
        self.notices.append(text)


def _ctrl_c() -> None:
    raise KeyboardInterrupt


def _kill_9() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def keeping(folder: Path, *, fresh: bool = False) -> Keeping:
    return Keeping(store=folder / "store", fresh=fresh, journals=folder / "unfinished")


def scan(folder: Path, watch: Watch, *, fresh: bool = False) -> dict[str, Measurement]:
    """As the pipeline does it; every run of a configuration adds a line to a log."""
    remembering = Remembering(watch)
    options = {"log": str(folder / "log"), "pause": 0.01}
    keep = keeping(folder, fresh=fresh).of_scan("cpu", CALLS, options)
    found = measure(CALLS, "cpu", os.environ, remembering, options, keep)
    if not remembering.was_interrupted:
        keep.finished()
    return found


def killed_scan(folder: str, fresh: str) -> None:
    """What the process runs that is killed; torch is in no process."""
    session.Launch = partial(Launch, workers=1, runner=RUNNER)  # type: ignore[misc, assignment]
    scan(Path(folder), Watch(4, _kill_9), fresh=fresh == "fresh")


def runs(folder: Path) -> Counter[str]:
    return Counter(line.split()[2] for line in (folder / "log").read_text().splitlines())


def left(folder: Path) -> list[Path]:
    return list((folder / "unfinished").glob("*/*"))


@pytest.mark.parametrize("fresh", [False, True])
def test_after_ctrl_c_nothing_is_repeated(tmp_path: Path, fresh: bool) -> None:
    first = scan(tmp_path, Watch(5), fresh=fresh)
    done = sum(each.status == "native" for each in first.values())
    assert 4 <= done < len(CALLS)
    assert {each.status for each in first.values()} == {"native", "unknown"}
    again = Watch()
    found = scan(tmp_path, again, fresh=fresh)
    assert len(CALLS) > again.reused >= done
    assert again.notices == [f"Goes on with an unfinished scan: {again.reused} results are known."]
    assert {each.status for each in found.values()} == {"native"}
    assert sum(runs(tmp_path).values()) - len(CALLS) <= IN_FLIGHT
    assert left(tmp_path) == []


IN_FLIGHT = 16
"""A worker runs ahead by so much while a journal is brought to disk."""


@pytest.mark.parametrize("how", ["plain", "fresh"])
def test_after_kill_9_nothing_is_repeated(tmp_path: Path, how: str) -> None:
    script = "import sys; from tests.probe.test_keeping import *; killed_scan(*sys.argv[1:])"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), how],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
    again = Watch()
    found = scan(tmp_path, again, fresh=how == "fresh")
    assert 8 <= again.reused < len(CALLS)
    assert {each.status for each in found.values()} == {"native"}
    assert sum(runs(tmp_path).values()) - len(CALLS) <= 2 * IN_FLIGHT
    assert left(tmp_path) == []


def test_a_fresh_scan_runs_what_is_known_and_replaces_it(tmp_path: Path) -> None:
    scan(tmp_path, Watch())
    store, _ = open_store(tmp_path / "store")
    with store:
        lines = [line.replace(b'"native"', b'"wrong"') for line in store.export()]
        assert store.merge(lines).replaced == len(CALLS)
    known = scan(tmp_path, Watch())
    assert {each.status for each in known.values()} == {"wrong"}
    assert set(runs(tmp_path).values()) == {1}
    scan(tmp_path, Watch(), fresh=True)
    assert set(runs(tmp_path).values()) == {2}
    known = scan(tmp_path, Watch())
    assert {each.status for each in known.values()} == {"native"}
    assert set(runs(tmp_path).values()) == {2}


def test_a_fresh_scan_takes_up_no_other_one(tmp_path: Path) -> None:
    scan(tmp_path, Watch(5))
    fresh = Watch()
    scan(tmp_path, fresh, fresh=True)
    assert fresh.reused == 0
    assert len(left(tmp_path)) == 1  # that of the interrupted one


def test_a_scan_is_known_by_what_it_runs_on_what(tmp_path: Path) -> None:
    keep = keeping(tmp_path)
    scans = {
        keep.of_scan("cpu", CALLS, {}).journals,
        keep.of_scan("cuda", CALLS, {}).journals,
        keep.of_scan("cpu", CALLS[:3], {}).journals,
        keep.of_scan("cpu", CALLS, {"stress": True}).journals,
        keeping(tmp_path, fresh=True).of_scan("cpu", CALLS, {}).journals,
    }
    assert len(scans) == 5
    moved = [msgspec.structs.replace(call, phase="backward") for call in reversed(CALLS)]
    assert keep.of_scan("cpu", moved, {}).journals in scans
    passes = {keep.of_scan("cpu", CALLS, {}).journal({"fallback": f}) for f in (None, False, True)}
    assert len(passes) == 3


def test_nothing_is_kept_by_default(tmp_path: Path) -> None:
    keep = Keeping().of_scan("cpu", CALLS, {})
    assert keep.journal({}) is None
    keep.finished()
    assert list(tmp_path.iterdir()) == []


def test_the_same_scan_twice_at_a_time(tmp_path: Path) -> None:
    """The second one has no journal, and harms that of the first in nothing."""
    keep = keeping(tmp_path).of_scan("cpu", CALLS, {})
    path = keep.journal({"fallback": None, "options": {}})
    assert path is not None
    with Journal(path, "the first"):
        found = measure(CALLS, "cpu", os.environ, None, {}, keep)
    assert {each.status for each in found.values()} == {"native"}
    assert path.exists()


def test_what_nobody_took_up_for_long_is_removed(tmp_path: Path) -> None:
    keep = keeping(tmp_path)
    for name in ("old", "new"):
        (tmp_path / "unfinished" / name).mkdir(parents=True)
        (tmp_path / "unfinished" / name / "a.jsonl").touch()
    os.utime(tmp_path / "unfinished" / "old" / "a.jsonl", (0, 0))
    keep.of_scan("cpu", CALLS, {})
    assert [path.name for path in (tmp_path / "unfinished").iterdir()] == ["new"]
