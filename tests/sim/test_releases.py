"""Prepared releases through the probe and the commands: `opscan sim prepare` 2.9.1 and 2.15.0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scanner.backends.sim_spec import sim_target
from scanner.probe.sweep import op_infos
from scanner.sim.prepare.release import survey
from scanner.sim.study.ask import ask_op, compare_releases
from scanner.sim.study.interface import OpAnswer
from tests.cli.test_devices import MODEL
from tests.cli.test_startup import modules_of

pytestmark = pytest.mark.sim

CACHE = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))


@pytest.fixture(autouse=True, scope="module")
def _releases() -> None:
    usable = {found.release for found in survey() if found.state == "usable"}
    if missing := {"2.9.1", "2.15.0"} - usable:
        pytest.skip(f"not prepared: {', '.join(sorted(missing))}")


def answer(op: str, release: str, **options: Any) -> OpAnswer:
    return ask_op(op, sim_target(f"metal-sim:{release}"), options, os.environ)


def max_rel(found: OpAnswer) -> float:
    assert found.error is not None
    assert isinstance(found.error.max_rel, float)
    return found.error.max_rel


def test_the_tail_of_erfc_is_zero_in_2_9_1_and_right_in_2_15_0() -> None:
    old, new = (answer("aten::erfc", release) for release in ("2.9.1", "2.15.0"))
    assert old.outcome == new.outcome == "native-shader"
    assert max_rel(old) == 1.0
    assert old.error is not None
    assert old.error.worst is not None
    assert (old.error.worst.device, float(old.error.worst.input) > 3.9) == (0.0, True)
    assert max_rel(new) < 2e-6


def test_erfinv_of_2_9_1_is_off() -> None:
    assert 1e-6 < max_rel(answer("aten::erfinv", "2.9.1")) < 1e-4


def test_texts_are_the_release_s_own() -> None:
    old = answer("aten::linalg_qr", "2.9.1", args="4x4:float32[-1,1]")
    assert (old.outcome, old.exception) == ("raises", "NotImplementedError")
    assert old.message.startswith(
        "The operator 'aten::linalg_qr.out' is not currently implemented for the MPS device."
    )
    new = answer("aten::linalg_qr", "2.15.0", args="4x4:float32[-1,1]")
    assert new.outcome == "native-shader"
    wide = answer("aten::neg", "2.15.0", dtype="float64")
    assert (wide.outcome, wide.exception) == ("raises", "TypeError")
    assert "doesn't support float64" in wide.message


def test_strides_offsets_and_in_place_arguments() -> None:
    found = answer("aten::add_.Tensor", "2.15.0", args="3x4:float32[-1,1],4:float32[-1,1]")
    assert found.error is not None
    assert (found.outcome, found.error.differs) == ("native-shader", 0)


def test_releases_side_by_side() -> None:
    samples = op_infos(["erfc", "linalg.qr"], ["float32"], 2, os.environ)
    releases = (sim_target(f"metal-sim:{release}") for release in ("2.9.1", "2.15.0"))
    found = compare_releases(*releases, samples, os.environ)
    kinds = {(each.op, each.kind) for each in found.differences}
    assert ("aten::linalg_qr", "now-runs") in kinds
    assert ("aten::erfc", "result") in kinds


def scan(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environ = os.environ | {"XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": CACHE}
    return subprocess.run(
        [sys.executable, "-m", "scanner", *arguments],
        cwd=folder, env=environ, capture_output=True, check=False,
    )  # fmt: skip


def test_a_scan_for_two_targets(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    targets = ("--target", "torch==2.9.1,macos=15.5", "--target", "torch==2.15.0,macos=26.2")
    done = scan(tmp_path, "net.py", "--device", "metal-sim", *targets, "-f", "json")
    assert done.returncode in {0, 3}, done.stderr
    (model,) = json.loads(done.stdout)["models"]
    for row in model["ops"]:
        assert row["measurement"] is None
        assert set(row["simulations"]) <= {verdict["target"] for verdict in row["verdicts"]}
    evidence = {
        verdict["target"]: verdict["evidence"]
        for row in model["ops"]
        if row["op"] == "aten::sigmoid"
        for verdict in row["verdicts"]
    }
    assert evidence == dict.fromkeys(targets[1::2], "simulated")
    kept = [json.loads(line) for line in scan(tmp_path, "db", "measurements").stdout.splitlines()]
    assert {(each["place"]["backend"], each["place"]["os"]) for each in kept} == {
        ("metal-sim", "macOS 15.5 (imitated)"),
        ("metal-sim", "macOS 26.2 (imitated)"),
    }


def test_the_parent_of_a_simulated_scan_loads_neither_torch_nor_the_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "net.py").write_text(MODEL)
    code, modules, out = modules_of(
        "net.py", "--device", "metal-sim:2.15.0", "-f", "json", blocked=(), cwd=tmp_path
    )
    assert code in {0, 3}
    assert '"simulated"' in out
    assert not {name.split(".")[0] for name in modules} & {"torch", "unicorn", "llvmlite"}
