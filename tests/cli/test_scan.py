from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from opdb import query
from scanner.capture.client import SourceCapture
from scanner.capture.protocol import Job
from tests.cli.conftest import Child, Invoke
from tests.samples import call, partial

SILENT = call("aten::linalg_svd")
MISSING = call("aten::_linalg_eigh")
OLD = ("--target", "torch==2.9.1")


def test_a_clean_scan_is_0(invoke: Invoke, child: Child) -> None:
    found = invoke("clean.py", *OLD)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("no errors, no warnings in 1 model and 1 file on torch 2.9.1\n")


def test_the_command_may_be_left_out(invoke: Invoke, child: Child) -> None:
    assert invoke("scan", "clean.py", *OLD) == invoke("clean.py", *OLD) == invoke(*OLD, "clean.py")


def test_findings_are_1(invoke: Invoke, child: Child) -> None:
    child.yields("broken.py", MISSING)
    found = invoke("broken.py", *OLD)
    assert found.code == 1
    assert "OPS101" in found.out


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 1), ("never", 0)], ids=str)
def test_fail_on(invoke: Invoke, child: Child, fail_on: str, code: int) -> None:
    child.yields("clean.py", SILENT)
    assert invoke("clean.py", *OLD, "--fail-on", fail_on).code == code


@pytest.mark.parametrize("reason", ["not captured", "in part", "unknown op"])
def test_incomplete_is_3_unless_allowed(invoke: Invoke, child: Child, reason: str) -> None:
    if reason == "not captured":
        child.fails("clean.py", "forward raised ValueError", entry="Net")
    elif reason == "in part":
        child.yields("clean.py", call("aten::mm"), capture=partial("backward", "it raised"))
    else:
        child.yields("clean.py", call("torchvision::nms"))
    assert invoke("clean.py", *OLD).code == 3
    assert invoke("clean.py", *OLD, "--allow-incomplete").code == 0


def test_what_the_user_must_mend_is_2_and_the_rest_is_reported(
    invoke: Invoke, child: Child
) -> None:
    child.fails("broken.py", "line 3: invalid syntax", remedy="Mend it.", unreadable=True)
    child.yields("other.py", MISSING)
    found = invoke("broken.py", "clean.py", "other.py", *OLD)
    assert found.code == 2
    assert "broken.py could not be loaded: line 3: invalid syntax\n" in found.out
    assert "OPS101" in found.out


def test_a_missing_file_among_others_is_2_and_the_rest_is_reported(
    invoke: Invoke, child: Child
) -> None:
    found = invoke("gone.py", "clean.py", *OLD, "-f", "concise")
    assert (found.code, found.out) == (
        2,
        "gone.py: OPS903 note gone.py could not be loaded: no such file\n",
    )
    assert [job.source.argument for job in child.jobs] == ["clean.py"]


def test_nothing_but_a_missing_file_is_one_message(invoke: Invoke, child: Child) -> None:
    found = invoke("gone.py", *OLD)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("opscan: error: gone.py: no such file\n  ")
    assert len(found.err.splitlines()) == 2


def test_a_bug_in_the_child_is_2_with_its_traceback(invoke: Invoke, child: Child) -> None:
    child.fails("clean.py", "opscan failed on it", traceback="Traceback: KeyError: 'x'")
    found = invoke("clean.py", *OLD)
    assert found.code == 2
    assert "Traceback: KeyError: 'x'" in found.err
    assert "Traceback" not in found.out


def test_a_bug_in_the_parent_is_2_with_its_traceback(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> SourceCapture:
        raise KeyError("x")

    monkeypatch.setattr("scanner.pipeline.capture_source", broken)
    found = invoke("clean.py", *OLD)
    assert (found.code, found.out) == (2, "")
    assert "KeyError: 'x'" in found.err
    assert "this is a bug of opscan" in found.err


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_an_interrupt_ends_every_child_and_is_2(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch, signum: signal.Signals
) -> None:
    def slow(job: Job, launch: object) -> SourceCapture:
        os.kill(os.getpid(), signum)
        assert launch.stop.wait(30)  # type: ignore[attr-defined]
        return SourceCapture(argument=job.source.argument, models=())

    monkeypatch.setattr("scanner.pipeline.capture_source", slow)
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = invoke("clean.py", *OLD)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (found.code, found.out) == (2, "")
    assert "interrupted" in found.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Usage: opscan"),
        (("scan",), "Missing argument 'MODEL...'"),
        (("clean.py", "--nonsense"), "No such option"),
        (("clean.py", "--target", "torch==99"), "torch 99 is not known"),
        (("clean.py", "--target", "tensorflow==2.18"), "not supported yet"),
        (("clean.py", "--target", "torch==2.9.1,mac=15"), "Did you mean macos?"),
        (("clean.py", "--mode", "trian"), "trian"),
        (("clean.py", "--device", "tpu"), "there is no device 'tpu'"),
        (("clean.py", "--device", "drill:abort"), "drill:abort=aten::mm"),
        (("clean.py", "--device", "none", "--steps", "2"), "--steps needs a device"),
        (("clean.py", "--device", "none", "--batch", "8"), "--batch needs a device"),
        (("clean.py", "--device", "cpu", "--steps", "0"), "--steps"),
        (("clean.py", "--device", "cpu", "--batch", "0,x"), "'0' is no batch size"),
        (("clean.py", "--device", "cpu", "--batch", "8,x"), "'x' is no batch size"),
        (("clean.py", "--device", "cpu", "--batch", ""), "'' is no batch size"),
        (("clean.py", "--static", "--device", "cpu"), "--device needs the model to be run"),
        (("clean.py", "--format", "jsn"), "Did you mean json?"),
        (("clean.py", "--report", "json"), "not FORMAT=FILE"),
        (("clean.py", "--report", "pdf=x"), "not FORMAT=FILE"),
        (("clean.py", "--report", "json=-"), "not FORMAT=FILE"),
        (("clean.py", "-o", "no/such/place.txt"), "no such directory"),
        (("clean.py", "-o", "."), "it is a directory"),
        (("clean.py", "-o", "a", "--report", "json=a"), "two reports go to a"),
        (("clean.py", "--timeout", "0"), "timeout must be more than 0"),
        (("clean.py", "--timeout", "soon"), "not a valid float"),
        (("clean.py", "--inputs", "x=3xx4"), "3xx4"),
        (("clean.py:no-name",), "no-name"),
    ],
)
def test_bad_usage_is_2_before_anything_runs(
    invoke: Invoke, child: Child, arguments: tuple[str, ...], message: str
) -> None:
    found = invoke(*arguments)
    assert (found.code, found.out) == (2, "")
    assert message in found.err
    assert "Traceback" not in found.err
    assert child.jobs == []


def test_a_scan_needs_torch_and_says_so(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opdb.installed.version", lambda: None)
    found = invoke("clean.py", *OLD)
    assert (found.code, found.out, child.jobs) == (2, "", [])
    assert "torch is not installed" in found.err
    assert "opscan-metal[torch]" in found.err


def test_the_newest_release_is_the_default_and_the_report_says_so(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    found = json.loads(invoke("clean.py", "-f", "json").out)
    assert [target["version"] for target in found["targets"]] == [query.newest()]
    (note,) = found["environment"]["notes"]
    assert query.newest() in note
    assert "--target" in note


def test_targets_with_one_profile_are_captured_once(invoke: Invoke, child: Child) -> None:
    invoke("clean.py", *OLD, "--target", "torch==2.9.0,macos=15.5,fallback=1")
    (job,) = child.jobs
    assert len(job.profiles) == 1


def test_flags_reach_the_child(invoke: Invoke, child: Child, tmp_path: Path) -> None:
    invoke("clean.py:Net", *OLD, "--mode", "infer", "--inputs", "x=2x3:float32", "--timeout", "7.5")
    (job,) = child.jobs
    assert (job.source.name, job.mode, job.inputs) == ("Net", "infer", "x=2x3:float32")
    assert job.cwd == str(tmp_path)
    assert job.source.path == str(tmp_path / "clean.py")
    assert child.launches[0].timeout_s == 7.5


def test_settings_of_the_project_are_used(invoke: Invoke, child: Child, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.opscan]\ntarget = ["torch==2.9.1"]\nmode = "infer"\nfail-on = "warning"\n'
        'entry = "Net"\ninputs = "x=1x3"\n'
    )
    child.yields("clean.py", SILENT)
    assert invoke("clean.py").code == 1
    assert (child.jobs[0].mode, child.jobs[0].entry, child.jobs[0].inputs) == (
        "infer",
        "Net",
        "x=1x3",
    )
    assert invoke("clean.py", "--fail-on", "never", "--mode", "train").code == 0
    assert child.jobs[1].mode == "train"


def test_the_same_file_is_scanned_once(invoke: Invoke, child: Child) -> None:
    invoke("clean.py", "clean.py", *OLD)
    assert len(child.jobs) == 1


def test_reports_stand_in_the_order_of_the_arguments(invoke: Invoke, child: Child) -> None:
    found = invoke("other.py", "gone.py", "clean.py", *OLD, "-f", "json")
    sources = [model["source"] for model in json.loads(found.out)["models"]]
    assert sources == ["other.py", "gone.py", "clean.py"]


def test_quiet_and_verbose(invoke: Invoke, child: Child) -> None:
    quiet = invoke("clean.py", *OLD, "-q")
    assert quiet.out.splitlines() == ["no errors, no warnings in 1 model and 1 file on torch 2.9.1"]
    loud = invoke("clean.py", *OLD, "-v")
    assert "aten::mm" in loud.out
    assert "[clean.py stdout] hello" in loud.err
    assert "[clean.py stderr] a warning" in loud.err
    assert "target is set in the command line" in loud.err
    assert "aten::mm" not in invoke("clean.py", *OLD).out


def test_a_misspelt_variable_is_mentioned(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSCAN_TARGETS", "torch==2.9.1")
    assert "Did you mean OPSCAN_TARGET?" in invoke("clean.py", *OLD).err


def test_several_reports_from_one_scan(invoke: Invoke, child: Child, tmp_path: Path) -> None:
    found = invoke("clean.py", *OLD, "--report", "json=r.json", "--report", "concise=r.txt")
    assert found.out.startswith("no errors")
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "opscan.report/1"
    assert (tmp_path / "r.txt").read_text() == ""
    assert len(child.jobs) == 1


def test_output_goes_to_the_file_and_nowhere_else(
    invoke: Invoke, child: Child, tmp_path: Path
) -> None:
    shown = invoke("clean.py", *OLD).out
    kept = invoke("clean.py", *OLD, "-o", "report.txt")
    assert kept.out == ""
    assert (tmp_path / "report.txt").read_text() == shown
    assert invoke("clean.py", *OLD, "-o", "-").out == shown


def test_a_failed_scan_leaves_the_old_report_alone(
    invoke: Invoke, child: Child, tmp_path: Path
) -> None:
    (tmp_path / "report.txt").write_text("old")
    assert invoke("gone.py", *OLD, "-o", "report.txt").code == 2
    assert (tmp_path / "report.txt").read_text() == "old"


def test_json_is_the_same_every_time(invoke: Invoke, child: Child) -> None:
    child.yields("broken.py", MISSING, SILENT)
    first, second = (invoke("broken.py", *OLD, "-f", "json").out for _ in range(2))
    assert first == second
