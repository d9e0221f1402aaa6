"""What a scan tells and what it refuses; how its workers are started and replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.probe.limits import Launch, Limits
from scanner.probe.outcomes import measurement_of
from scanner.probe.supervisor import DeviceError, probe

from .iso_fakes import FACTS, QUICK, Watcher, among_others, call, fine, others_are_fine, outcomes


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
    assert fallback["fallbacks"] == ["fake::falls_back"]  # as it is read from a report
    assert fallback["number"] == 0
    assert "death" not in fallback


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


def test_facts_are_those_of_the_device() -> None:
    class Facts(Watcher):
        def ready(self, facts, total, reused):  # type: ignore[no-untyped-def]
            self.facts = facts

    watcher = Facts()
    outcomes(fine(1), observer=watcher)
    assert watcher.facts == FACTS
