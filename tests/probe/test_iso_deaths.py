"""Everything that ops can do to the processes they run in; torch-free, so that it is quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.probe.limits import Limits

from .iso_fakes import among_others, call, fine, others_are_fine, outcomes


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


def test_an_op_after_which_the_device_is_unusable() -> None:
    found = outcomes(among_others("sickens"))
    assert found["sickens 0"].status == "crash"
    assert found["sickens 0"].reason.startswith("leaves the device unusable: context lost")
    others_are_fine(found, "sickens")


def test_a_late_death_is_found_among_others_that_hide_it() -> None:
    killers = ("abort", "exit", "segfault", "partial")
    calls = [each for op in killers for each in (call("fake::late", len(op)), call(f"fake::{op}"))]
    found = outcomes([*calls, call("fake::late", 99)])
    assert {each.status for each in found.values()} == {"crash"}


def test_many_faults_at_once_with_several_workers() -> None:
    faults = ("abort", "exit", "late", "segfault", "garbage", "partial")
    calls = [each for op in faults for each in (*fine(1, start=len(op) * 10), call(f"fake::{op}"))]
    found = outcomes([*calls, *fine(4)], workers=2)
    wrong = {name.split()[0] for name, each in found.items() if each.status == "crash"}
    assert wrong == set(faults) - {"garbage"}
    assert all(each.status in {"crash", "native"} for each in found.values())
