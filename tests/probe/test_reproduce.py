"""Scripts of failures are written by a child, run in others, and neither can harm a scan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scanner.backends.interface import DeviceFacts
from scanner.errors import UsageError
from scanner.probe import reproduce
from scanner.probe.issue import Check, Failure
from scanner.probe.observer import Observer
from scanner.probe.outcome import CaseResult
from scanner.probe.outcomes import measurement_of
from scanner.probe.plan import config_key
from scanner.probe.protocol import Death, DeathKind, Outcome
from scanner.probe.reproduce import (
    Reproduction,
    claim_folder,
    failures,
    repro_name,
    write_repros,
)
from scanner.probe.script_run import check_script
from scanner.records import Measurement, OpCall, TensorSpec

FACTS = DeviceFacts(backend="cpu", name="CPU", framework="torch 2.13.0", os="Linux")


def relu(size: int = 4, op: str = "aten::relu") -> OpCall:
    spec = TensorSpec(name="self", dtype="float32", shape=(size,), stride=(1,))
    return OpCall(op=op, phase="forward", inputs=(spec,))


def failed(
    call: OpCall, status: Any = "wrong", death: DeathKind | None = None, what: str = "SIGABRT"
) -> Failure:
    result = CaseResult(op=call.op, status=status, reason="it is bad")
    return Failure(call=call, result=result, death=death and Death(kind=death, what=what))


def measured(call: OpCall, **outcome: Any) -> Measurement:
    given = {"status": "wrong", "reason": "why"} | outcome
    return measurement_of(Outcome(key=config_key(call), **given), FACTS)


class Heard(Observer):
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, text: str) -> None:
        self.said.append(text)


def test_names_are_readable_and_stable() -> None:
    assert repro_name(relu()) == f"aten-relu-float32-{config_key(relu())[:8]}"
    assert repro_name(relu(op="aten::add_.Tensor")).startswith("aten-add_-Tensor-float32-")
    assert repro_name(relu(5)) != repro_name(relu())
    none = OpCall(op="aten::rand", phase="forward", inputs=())
    assert repro_name(none).startswith("aten-rand-none-")


def test_several_devices_can_share_a_folder(tmp_path: Path) -> None:
    one, other = (
        Reproduction(folder=tmp_path, device="metal-sim", label=label).name(relu())
        for label in ("torch-2.9.1", "torch-2.15.0-macos-26.2")
    )
    assert one == f"torch-2.9.1-{repro_name(relu())}"
    assert one != other
    (tmp_path / f"{one}.md").touch()
    claim_folder(tmp_path)


def test_failures_are_what_a_device_got_wrong_each_once() -> None:
    calls = [relu(size) for size in range(1, 8)]
    statuses = ("native", "wrong", "nan", "crash", "unsupported", "slow", "unknown")
    outcomes = {
        config_key(call): measured(call, status=status)
        for call, status in zip(calls, statuses, strict=True)
    }
    found = failures([*calls, *calls, relu(99)], outcomes)
    assert [each.result.status for each in found] == ["wrong", "nan", "crash", "unsupported"]
    assert {each.result.reason for each in found} == {"why"}


def test_the_result_of_a_failure_is_the_runners() -> None:
    result = CaseResult(op="aten::relu", status="wrong", reason="bad", trial="nan", seed=7)
    detail = {**msgspec.to_builtins(result), "fallback": {"seconds": 1}}
    [found] = failures(
        [relu()], {config_key(relu()): measured(relu(), reason="bad", detail=detail)}
    )
    assert found == Failure(call=relu(), result=result)


def test_a_crash_keeps_its_evidence() -> None:
    death = Death(kind="signal", what="SIGABRT", stderr="assertion")
    [found] = failures(
        [relu()], {config_key(relu()): measured(relu(), status="crash", death=death)}
    )
    assert (found.result.status, found.death) == ("crash", death)


def test_a_folder_may_be_new_or_hold_files_of_an_earlier_scan(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    claim_folder(folder)
    (folder / f"{repro_name(relu())}.py").touch()
    (folder / f"{repro_name(relu())}.md").touch()
    claim_folder(folder)
    assert len(list(folder.iterdir())) == 2


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"notes{number}.txt").touch()
    with pytest.raises(UsageError, match=r"other files \(notes0.txt, .* and 2 more\)"):
        claim_folder(tmp_path)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot be written: (File exists|Not a directory)"):
        claim_folder(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        claim_folder(tmp_path)


WRONG = "print('THE DEVICE IS WRONG'); sys.exit(1)"
RIGHT = "print('the device is right')"
ABORT = "print('x', flush=True); os.abort()"
HANG = "time.sleep(60)"


@pytest.mark.parametrize(
    ("script", "failure", "confirmed", "message"),
    [
        (WRONG, failed(relu()), True, "the script exited with 1: THE DEVICE IS WRONG"),
        (RIGHT, failed(relu()), False, "the script exited with 0: the device is right"),
        ("sys.exit(1)", failed(relu()), False, "the script exited with 1: nothing was printed"),
        (f"print('the device raises X: no'); {WRONG}", failed(relu()), True, "raises X: no"),
        ("import no_such_module", failed(relu()), False, "No module named"),
        (ABORT, failed(relu()), False, "the script's process was killed by SIGABRT"),
        (ABORT, failed(relu(), "crash", "signal"), True, "was killed by SIGABRT"),
        ("os._exit(0)", failed(relu(), "crash", "exit"), True, "the script exited with 0"),
        (RIGHT, failed(relu(), "crash", "exit"), False, "the device is right"),
        ("import no_such_module", failed(relu(), "crash", "exit"), False, "No module named"),
        ("os.kill(os.getpid(), 9)", failed(relu(), "crash", "signal"), False, "SIGKILL"),
        (HANG, failed(relu(), "crash", "hang"), True, "did not end within 0.5 s"),
        (HANG, failed(relu()), False, "did not end within 0.5 s"),
        (ABORT, failed(relu(), "crash", "hang"), False, "was killed by SIGABRT"),
        (WRONG, failed(relu(), "crash", "device"), True, "THE DEVICE IS WRONG"),
        (WRONG, failed(relu(), "crash"), True, "THE DEVICE IS WRONG"),
    ],
)
def test_a_script_confirms_what_it_was_written_for(
    tmp_path: Path, script: str, failure: Failure, confirmed: bool, message: str
) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"import os, sys, time\n{script}\n")
    check = check_script(path, failure, os.environ, 0.5 if script == HANG else 30)
    assert check.status == ("confirmed" if confirmed else "not reproduced")
    assert message in check.message


def test_scripts_are_written_and_those_that_cannot_be_say_why(tmp_path: Path) -> None:
    found = [failed(relu()), failed(relu(op="aten::no_such_op"))]
    heard = Heard()
    how = Reproduction(folder=tmp_path, device="cpu", environ=os.environ, check=False)
    written = write_repros(found, FACTS, how, heard)
    assert [each.check.status for each in written] == ["not checked", "no script"]
    first, second = (repro_name(each.call) for each in found)
    assert {p.name for p in tmp_path.iterdir()} == {f"{first}.py", f"{first}.md", f"{second}.md"}
    script = (tmp_path / f"{first}.py").read_text()
    assert script.rstrip() in (tmp_path / f"{first}.md").read_text()
    assert f"{second}.py: no script: torch" in heard.said[1]


def test_a_writer_that_dies_costs_what_it_was_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start of this one writes a single script and dies of the next."""
    writer = tmp_path / "writer.sh"
    writer.write_text(
        'name=$(head -n 1 "$1" | sed \'s/^{"name":"\\([^"]*\\)".*/\\1/\')\n'
        'echo "sys.exit()" > "$2/$name.py"; echo last words; exit 9\n'
    )
    monkeypatch.setattr(reproduce, "_WRITER", ("/bin/sh", str(writer)))
    found = [failed(relu(size)) for size in range(1, 6)]
    how = Reproduction(folder=tmp_path / "out", device="cpu", environ=os.environ, check=False)
    claim_folder(how.folder)
    written = write_repros(found, FACTS, how, Observer())
    statuses = [each.check.status for each in written]
    assert statuses == ["not checked", "no script", "not checked", "no script", "not checked"]
    assert written[1].check.message == "the process that writes it ended with 9: last words"


def test_a_writer_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "_WRITER", ("/bin/sh", "-c", "sleep 60"))
    how = Reproduction(
        folder=tmp_path, device="cpu", environ=os.environ, start_s=0.1, each_s=0, check=False
    )
    [written] = write_repros([failed(relu())], FACTS, how, Observer())
    assert written.check.message.startswith("the process that writes it took too long")


def test_ctrl_c_leaves_the_rest_unchecked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def check(script: Path, *_: object) -> Check:
        calls.append(script.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return Check(status="confirmed", message="it did")

    found = [failed(relu(size)) for size in (1, 2, 3)]
    texts = {repro_name(each.call): reproduce._Source(text="pass\n") for each in found}
    monkeypatch.setattr(reproduce, "_sources", lambda *_: texts)
    monkeypatch.setattr(reproduce, "check_script", check)
    how = Reproduction(folder=tmp_path, device="cpu", environ=os.environ)
    written = write_repros(found, FACTS, how, Observer())
    assert [each.check.status for each in written] == ["confirmed", "not checked", "not checked"]
    assert len(calls) == 2
    assert len(list(tmp_path.iterdir())) == 6


def test_a_folder_that_vanished_costs_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {repro_name(relu()): reproduce._Source(text="pass\n")}
    monkeypatch.setattr(reproduce, "_sources", lambda *_: texts)
    how = Reproduction(folder=tmp_path / "gone", device="cpu", environ=os.environ)
    [written] = write_repros([failed(relu())], FACTS, how, Observer())
    assert written.check.message == "it cannot be written: No such file or directory"


def test_nothing_failed_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "_WRITER", ("/no/such/program",))
    how = Reproduction(folder=tmp_path, device="cpu", environ=os.environ)
    assert write_repros([], FACTS, how, Observer()) == []
