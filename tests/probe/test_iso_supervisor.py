"""Everything that ops can do to the processes they run in; torch-free, so that it is quick."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.probe.limits import Launch, Limits
from scanner.probe.outcomes import measurement_of
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.store import open_store
from scanner.probe.supervisor import DeviceError, probe
from scanner.records import OpCall

from .iso_fakes import FACTS, QUICK, RUNNER, Watcher, call, fine, outcomes

HERE = str(Path(__file__).parents[2])


def among_others(*ops: str) -> list[OpCall]:
    return [*fine(4), *(call(f"fake::{op}") for op in ops), *fine(4, start=4)]


def others_are_fine(found: dict[str, Outcome], *ops: str) -> None:
    rest = {name: each for name, each in found.items() if name.split()[0] not in ops}
    assert len(rest) == 8
    for name, each in rest.items():
        assert (each.status, each.detail) == ("native", {"number": int(name.split()[1])})


@pytest.mark.parametrize(
    ("op", "what", "said"),
    [
        ("abort", "SIGABRT", "failed assertion in fake::abort"),
        ("segfault", "SIGSEGV", "fake::segfault reads address 0"),
        ("exit", "exit code 7", "fake::exit exits"),
        ("partial", "exit code 7", "dies while a result is written"),
        ("late", "SIGABRT", "failed assertion in fake::late"),
        ("leaves_a_child", "SIGABRT", "Aborted"),
        ("dies_at_leisure", "SIGABRT", "Aborted"),
    ],
)
def test_a_death_is_blamed_on_its_op_and_on_no_other(op: str, what: str, said: str) -> None:
    found = outcomes(among_others(op))
    guilty = found[f"{op} 0"]
    assert guilty.status == "crash"
    assert guilty.death is not None
    assert guilty.death.what == what
    assert guilty.death.alone
    assert said in guilty.death.stderr
    assert what in guilty.reason
    others_are_fine(found, op)


def test_a_hang_is_ended_and_its_place_is_shown() -> None:
    limits = Limits(case_s=0.4, first_s=0.2, linger_s=0.06)
    found = outcomes(among_others("hang"), limits=limits)
    guilty = found["hang 0"]
    assert guilty.status == "crash"
    assert guilty.reason.startswith("does not return: no result within")
    assert guilty.death is not None
    # faulthandler's traceback of where it hangs.
    assert "in _hang" in guilty.death.stderr
    others_are_fine(found, "hang")


def test_a_talkative_death_is_quoted_at_both_ends() -> None:
    death = outcomes([call("fake::talks_and_dies")])["talks_and_dies 0"].death
    assert death is not None
    assert death.stderr.startswith("line 0\nline 1\n")
    assert "\n…\n" in death.stderr
    assert "in talks_and_dies" in death.stderr
    assert len(death.stderr) < 5000


def test_an_op_that_fails_only_after_another() -> None:
    found = outcomes(among_others("poison", "spoilt_by_poison"))
    guilty = found["spoilt_by_poison 0"]
    assert guilty.status == "crash"
    assert guilty.death is not None
    assert not guilty.death.alone
    assert "when other ops have run in it before" in guilty.reason
    assert found["poison 0"].status == "native"


def test_a_death_that_does_not_repeat_is_unknown(tmp_path: Path) -> None:
    found = outcomes(among_others("once"), options={"mark": str(tmp_path / "mark")})
    assert found["once 0"].status == "unknown"
    assert "did not happen again" in found["once 0"].reason
    others_are_fine(found, "once")


def test_a_worker_killed_by_others_costs_nothing(tmp_path: Path) -> None:
    found = outcomes(among_others("once_killed"), options={"mark": str(tmp_path / "mark")})
    assert {each.status for each in found.values()} == {"native"}


def test_an_op_whose_process_is_killed_each_time_is_unknown() -> None:
    found = outcomes(among_others("killed"))
    assert found["killed 0"].status == "unknown"
    assert "lack of memory" in found["killed 0"].reason
    others_are_fine(found, "killed")


def test_memory() -> None:
    found = outcomes(among_others("exhausts", "dies_of_memory"))
    assert found["exhausts 0"].status == "unknown"
    assert found["exhausts 0"].reason == "out of memory: MemoryError: wanted too much"
    assert found["dies_of_memory 0"].status == "crash"
    assert found["dies_of_memory 0"].reason.startswith("runs out of memory")
    others_are_fine(found, "exhausts", "dies_of_memory")


def test_an_error_of_the_runner_is_not_the_ops() -> None:
    found = outcomes(among_others("breaks"))
    assert found["breaks 0"].status == "unknown"
    assert found["breaks 0"].reason == "it could not be judged: ValueError: no such operand"
    assert "in breaks" in found["breaks 0"].detail["traceback"]
    others_are_fine(found, "breaks")


def test_garbage_on_stdout_and_on_the_pipe_disturbs_nobody() -> None:
    found = outcomes(among_others("garbage"))
    assert found["garbage 0"].status == "native"
    others_are_fine(found, "garbage")


@pytest.mark.parametrize("last", [False, True])
def test_a_result_that_is_lost_on_its_way_is_fetched_again(tmp_path: Path, last: bool) -> None:
    calls = [*fine(3), call("fake::garbles_once"), *([] if last else fine(3, start=3))]
    found = outcomes(calls, options={"mark": str(tmp_path / "mark")})
    assert {each.status for each in found.values()} == {"native"}
    assert len(found) == len(calls)


def test_a_result_that_never_arrives_is_unknown() -> None:
    found = outcomes(among_others("garbles"))
    assert found["garbles 0"].status == "unknown"
    assert "garbled on its way 3 times" in found["garbles 0"].reason
    others_are_fine(found, "garbles")


def test_faults_of_the_worker_are_not_the_ops() -> None:
    found = outcomes(among_others("unencodable", "fails_its_worker"))
    assert found["unencodable 0"].status == "unknown"
    assert "TypeError" in found["unencodable 0"].reason
    assert {each.status for each in found.values()} <= {"native", "unknown"}
    others_are_fine(found, "unencodable", "fails_its_worker")


def test_address_space_can_be_limited() -> None:
    limits = Limits(memory=1 << 32, case_s=5.0, linger_s=0.0)
    found = outcomes(among_others("eats"), limits=limits)
    assert found["eats 0"].status == "unknown"
    assert found["eats 0"].reason.startswith("out of memory: MemoryError")
    others_are_fine(found, "eats")


@pytest.mark.parametrize(("fallback", "told"), [(True, "1"), (False, "0"), (None, "theirs")])
def test_workers_are_told_whether_ops_may_fall_back(fallback: bool | None, told: str) -> None:
    environ = {**os.environ, "PYTORCH_ENABLE_MPS_FALLBACK": "theirs"}
    launch = {"fallback": fallback, "environ": environ}
    found = outcomes([call("fake::environ")], launch=launch)
    assert found["environ 0"].detail["PYTORCH_ENABLE_MPS_FALLBACK"] == told


def test_workers_on_the_cpu_share_its_cores() -> None:
    environ = {name: each for name, each in os.environ.items() if name != "OMP_NUM_THREADS"}
    launch = {"environ": environ}
    alone = outcomes([call("fake::environ")], launch=launch)
    assert alone["environ 0"].detail["OMP_NUM_THREADS"] == ""
    together = outcomes([call("fake::environ")], launch=launch, workers=2)
    assert together["environ 0"].detail["OMP_NUM_THREADS"] == str(
        max(1, (os.cpu_count() or 1) // 2)
    )
    assert Launch().count("mps") == Launch().count("cuda") == 1
    assert Launch().count("cpu") == Launch().count("drill:nan=*") == 2


def test_an_op_after_which_the_device_is_unusable() -> None:
    found = outcomes(among_others("sickens"))
    assert found["sickens 0"].status == "crash"
    assert found["sickens 0"].reason.startswith("leaves the device unusable: context lost")
    others_are_fine(found, "sickens")


def test_a_worker_that_grows_is_replaced() -> None:
    watcher = Watcher()
    limits = Limits(growth=1_000_000, linger_s=0.0)
    found = outcomes(among_others("grows"), limits=limits, observer=watcher)
    assert {each.status for each in found.values()} == {"native"}
    assert watcher.notices == ["A worker had grown too large and was replaced."]


def test_fallbacks_and_warnings_are_named() -> None:
    found = outcomes(among_others("falls_back", "falls_back_in_a_thread", "warns"))
    assert found["falls_back 0"].status == "fallback"
    assert found["falls_back 0"].fallbacks == ("fake::falls_back",)
    assert found["falls_back_in_a_thread 0"].fallbacks == ("fake::inner",)
    assert found["warns 0"].warnings == ("odd layout",)
    assert found["warns 0"].status == "native"
    others_are_fine(found, "falls_back", "falls_back_in_a_thread", "warns")


def test_an_outcome_as_a_measurement_of_a_report() -> None:
    found = outcomes(among_others("abort", "falls_back"))
    crash = measurement_of(found["abort 0"], FACTS)
    assert crash.device == "fake (Fake 1, fake 1.0, fake os)"
    assert crash.status == "crash"
    assert crash.detail["death"]["what"] == "SIGABRT"
    fallback = measurement_of(found["falls_back 0"], FACTS).detail
    assert fallback["fallbacks"] == ("fake::falls_back",)
    assert fallback["number"] == 0
    assert "death" not in fallback


def test_many_faults_at_once_with_several_workers() -> None:
    faults = ("abort", "exit", "late", "segfault", "garbage", "partial")
    calls = [each for op in faults for each in (*fine(1, start=len(op) * 10), call(f"fake::{op}"))]
    found = outcomes([*calls, *fine(4)], workers=2)
    wrong = {name.split()[0] for name, each in found.items() if each.status == "crash"}
    assert wrong == set(faults) - {"garbage"}
    assert all(each.status in {"crash", "native"} for each in found.values())


def test_every_outcome_is_told_with_progress() -> None:
    watcher = Watcher()
    outcomes([*fine(6), *fine(6)], observer=watcher)
    assert [each.done for each in watcher.steps] == [1, 2, 3, 4, 5, 6]
    assert {each.total for each in watcher.steps} == {6}
    assert watcher.steps[-1].remaining_s == 0
    assert watcher.reused == 0


def test_no_device_is_one_error_and_no_failures() -> None:
    with pytest.raises(DeviceError) as caught:
        outcomes(fine(100), options={"refuse": "it is a virtual machine"})
    assert caught.value.message == "it is a virtual machine"
    assert caught.value.remedy == "Buy one."


def test_workers_that_do_not_come_up_say_why() -> None:
    with pytest.raises(DeviceError, match=r"exit code 9.*no such framework"):
        outcomes(fine(3), options={"stillborn": True})


def test_a_bad_device_spec_costs_no_process() -> None:
    with pytest.raises(UsageError):
        next(probe(fine(1), "gpu"))


def test_workers_killed_while_they_start_are_started_again(tmp_path: Path) -> None:
    births = tmp_path / "births"
    # The first worker dies of `exit`; the next four are killed before they are up.
    found = outcomes(among_others("exit"), options={"births": str(births)})
    assert found["exit 0"].status == "crash"
    others_are_fine(found, "exit")
    assert births.stat().st_size >= 6


def test_a_device_that_goes_away_leaves_the_rest_unknown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    launch = Launch(workers=1, runner="tests.probe.iso_fakes:dying_device")
    found = list(
        probe(among_others("abort"), "cpu", {"log": str(log)}, launch=launch, limits=QUICK)
    )
    latest = {each.key: each for each in found}
    assert len(latest) == 9
    lost = [each for each in latest.values() if each.status == "unknown"]
    assert lost
    assert all("not run: it went away" in each.reason and not each.final for each in lost)
    assert [each.status for each in found[:4]] == ["native"] * 4


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
import sys
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


def test_facts_are_those_of_the_device() -> None:
    class Facts(Watcher):
        def ready(self, facts, total, reused):  # type: ignore[no-untyped-def]
            self.facts = facts

    watcher = Facts()
    outcomes(fine(1), observer=watcher)
    assert watcher.facts == FACTS
