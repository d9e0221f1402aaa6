"""`opscan sim`, over prepared releases and answers that are made up."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.cli.main import run
from scanner.sim.prepare import client, prepared, release, toolchain
from scanner.sim.prepare.errors import PrepareError
from scanner.sim.prepare.news import News, Prepared, Progress, Step
from scanner.sim.study import ask
from scanner.sim.study.interface import OpAnswer
from tests.cli.test_startup import modules_of

ANSWER = OpAnswer(
    op="aten::exp", torch="2.9.1", dtype="float32", outcome="unknown",
    message="not executable: no graph interpreter", macos="15.5", gpu="Apple M2", args="drawn",
)  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One release that is usable, one that is damaged, one of another version of opscan."""
    monkeypatch.setattr(release, "cache_folder", lambda: tmp_path)
    native = toolchain.native_digest()
    for name, digest in (("2.9.1", native), ("2.15.0", native), ("2.0.1", "another")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "heap.mem").write_bytes(b"content")
        content = hashlib.sha256(b"content").hexdigest()
        part = prepared.Part("heap", "heap.mem", 0, 1, 7, content)
        made = prepared.Manifest(
            prepared.FORMAT, name, f"torch-{name}.whl", "ab12", digest, (part,),
            (), (), {}, {}, 0, {},
        )  # fmt: skip
        (folder / prepared.MANIFEST).write_bytes(msgspec.json.encode(made))
    (tmp_path / "2.15.0" / "heap.mem").unlink()
    return tmp_path


def test_list_says_what_can_be_used(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[1], line[4]) for line in lines] == [
        ("2.0.1", "outdated"),
        ("2.9.1", "usable"),
        ("2.15.0", "damaged"),
    ]
    assert run(["sim", "list", "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["release"], each["state"], each["sha256"]) for each in found] == [
        ("2.0.1", "outdated", ""),
        ("2.9.1", "usable", "ab12"),
        ("2.15.0", "damaged", ""),
    ]


def test_nothing_prepared_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "cache_folder", lambda: tmp_path)
    assert run(["sim", "list"]) == 0
    assert "opscan sim prepare torch==" in capsys.readouterr().out
    assert run(["sim", "op", "aten::exp"]) == 2
    assert "opscan sim prepare torch==" in capsys.readouterr().err


@pytest.mark.parametrize("spelt", ["torch==2.15.0", "2.15.0"])
def test_remove_takes_what_is_damaged_too(
    cache: Path, capsys: pytest.CaptureFixture[str], spelt: str
) -> None:
    assert run(["sim", "remove", spelt]) == 0
    assert str(cache / "2.15.0") in capsys.readouterr().out
    assert not (cache / "2.15.0").exists()
    assert run(["sim", "remove", spelt]) == 2
    assert "Prepared: 2.0.1, 2.9.1." in capsys.readouterr().err


SCRIPT = """
import sys
print('{"type":"step","text":"unpacking"}')
print('{"type":"progress","done":1,"total":2}')
%s
"""
DONE = """
made = '{"type":"prepared","release":"%s","folder":"/f","nbytes":5,"wheel":"w","sha256":"ab"}'
print(made % sys.argv[1])
"""


def prepare(last: str) -> tuple[Prepared, list[News]]:
    told: list[News] = []
    command = (sys.executable, "-c", SCRIPT % last)
    return client.prepare_apart("2.9.1", os.environ, told.append, command), told


def test_preparing_tells_each_step() -> None:
    made, told = prepare(DONE)
    assert (made.release, made.nbytes) == ("2.9.1", 5)
    assert told[:2] == [Step(text="unpacking"), Progress(done=1, total=2)]


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ('print(\'{"type":"failed","message":"no network","remedy":"connect"}\')', "no network"),
        ("sys.exit('out of disk')", "the process ended \\(out of disk\\)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the process ended"),
    ],
)
def test_a_preparation_that_fails_is_one_message(last: str, said: str) -> None:
    with pytest.raises(PrepareError, match=said) as caught:
        prepare(last)
    assert caught.value.remedy


def test_prepare_reports_the_wheel_s_hash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def apart(version: str, _environ: Any, listen: Any) -> Prepared:
        listen(Step(text=f"downloading torch {version}"))
        return Prepared(release=version, folder="/f", nbytes=5_000_000, wheel="w.whl", sha256="ab")

    monkeypatch.setattr(client, "prepare_apart", apart)
    assert run(["sim", "prepare", "torch==2.9.1"]) == 0
    said = capsys.readouterr()
    assert said.out == "torch 2.9.1 is prepared: 5 MB in /f\nfrom w.whl, sha256 ab\n"
    assert said.err == "downloading torch 2.9.1\n"


def test_an_unknown_outcome_is_exit_code_3(
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    asked: list[Any] = []

    def ask_op(*arguments: Any) -> OpAnswer:
        asked.append(arguments[:3])
        return ANSWER

    monkeypatch.setattr(ask, "ask_op", ask_op)
    assert run(["sim", "op", "exp", "--macos", "26.2", "--gpu", "m3", "--dtype", "half"]) == 3
    ((name, target, options),) = asked
    assert (name, target.id) == ("aten::exp", "torch==2.9.1,macos=26.2,chip=M3")
    assert options == {"args": "", "dtype": "float16", "seed": 0, "ulp": "nearest"}
    assert capsys.readouterr().out == snapshot
    known = msgspec.structs.replace(ANSWER, outcome="raises")
    monkeypatch.setattr(ask, "ask_op", lambda *_: known)
    assert run(["sim", "op", "aten::exp", "--torch", "2.9.1", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "raises"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["op", "aten::erfcc"], "Did you mean aten::erfc"),
        (["op", "aten::exp", "--args", "2x"], "--args, character 3: expected a size"),
        (["op", "aten::exp", "--dtype", "flat32"], "no dtype flat32"),
        (["op", "aten::exp", "--torch", "2.9"], "'2.9' is not a release"),
        (["op", "aten::exp", "--torch", "2.9.1", "--gpu", "R9"], "not an Apple-silicon chip"),
        (["prepare", "tensorflow==2.1.0"], "TensorFlow targets are not supported"),
        (["remove", "9.9.9"], "torch 9.9.9 is not prepared"),
        (["diff", "torch==2.9.1"], "Missing argument"),
    ],
)
def test_bad_input_is_exit_code_2(
    cache: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(["sim", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_listing_loads_neither_torch_nor_the_emulator(tmp_path: Path) -> None:
    blocked = ("torch", "numpy", "unicorn", "llvmlite", "rich")
    code, modules, _ = modules_of("sim", "list", blocked=blocked)
    assert code == 0
    assert not {name.split(".")[0] for name in modules} & set(blocked)
