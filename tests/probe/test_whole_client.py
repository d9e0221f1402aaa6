"""Children that run whole steps may die, hang or refuse; the others are run all the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scanner.capture.child import Launch
from scanner.capture.protocol import Job, JobSource
from scanner.probe import whole as module
from scanner.probe.whole import Whole, run_whole
from scanner.probe.whole_protocol import WholeJob

from .fake_whole import NOTE

LAUNCH = Launch(
    timeout_s=30.0,
    environ=dict(os.environ),
    command=(sys.executable, str(Path(__file__).with_name("fake_whole.py"))),
)


def run(*entries: str, batches: tuple[int, ...] = (), timeout_s: float = 30.0) -> dict[str, Whole]:
    job = WholeJob(
        job=Job(source=JobSource(argument="net.py"), cwd=str(Path.cwd())),
        entries=entries,
        device="cpu",
        steps=2,
        batches=batches,
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    launch = Launch(timeout_s=timeout_s, environ=environ, command=LAUNCH.command)
    return run_whole(job, launch)


def test_the_op_that_ends_the_process_is_named_and_the_rest_goes_on() -> None:
    done = run("op+op+abort", "op+well")
    died = done["op+op+abort"].accumulated
    assert died is not None
    assert died.ended is not None
    assert (died.ended.op, died.ended.phase, died.ended.kind) == (NOTE.op, NOTE.phase, "crash")
    assert "SIGABRT" in died.ended.message
    assert "assertion failed" in died.ended.message
    assert (died.steps, died.ops, died.incomplete) == (1, 1, "")
    well = done["op+well"].accumulated
    assert well is not None
    assert (well.steps, well.ended) == (2, None)


def test_silence_is_a_hang() -> None:
    found = run("op+hang", timeout_s=1.0)["op+hang"].accumulated
    assert found is not None
    assert found.ended is not None
    assert (found.ended.kind, found.ended.message) == ("hang", "it does not return within 1 s")


@pytest.mark.parametrize(
    ("deeds", "reason"),
    [
        ("op+killed", "killed by SIGKILL (perhaps for lack of memory) while aten::mm was run"),
        ("abort", "killed by SIGABRT between the ops of the step"),
        ("refused", "too large"),
        ("unusable", "no device"),
    ],
)
def test_what_no_op_is_to_blame_for_is_unknown(deeds: str, reason: str) -> None:
    found = run(deeds)[deeds].accumulated
    assert found is not None
    assert reason in found.incomplete
    assert (found.ended, found.steps) == (None, 0)


def test_a_bug_of_ours_is_kept_and_the_rest_goes_on() -> None:
    done = run("bug", "well")
    assert done["bug"].traceback == "Traceback: KeyError"
    assert done["well"].accumulated is not None


def test_batches_that_were_timed_survive_what_follows() -> None:
    swept = run("well+timed+more+killed", batches=(8, 16))["well+timed+more+killed"].batches
    assert swept is not None
    assert [point.batch for point in swept.points] == [8]
    assert swept.best == 8
    assert "at batch 16" in swept.ended + swept.incomplete


def test_ctrl_c_ends_the_child_and_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_child", interrupted)
    found = run("well")["well"].accumulated
    assert found is not None
    assert found.incomplete == "it was not reached"
