"""Which device a scan uses, and a scan that uses one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scanner.cli.devices import (
    batch_sizes,
    choose_autocast,
    choose_device,
    choose_ulp,
    choose_whole,
    require_device,
    simulated_target,
)
from scanner.errors import UsageError
from scanner.host import Host
from scanner.records import Target

MAC = Host(system="Darwin", machine="arm64", python="3.12.1", torch="2.9.1", macos="15.5")
LINUX = Host(system="Linux", machine="x86_64", python="3.12.1", torch="2.9.1+cpu")
HERE = Target(framework="torch", version="2.9.1")
MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x).sigmoid()

def opscan_model():
    return Net(), (torch.randn(2, 4),)
"""


@pytest.mark.parametrize(
    ("spec", "host", "expected"),
    [
        ("auto", MAC, ("mps", HERE.id)),
        ("auto", LINUX, (None, None)),
        ("none", MAC, (None, None)),
        ("mps", MAC, ("mps", HERE.id)),
        ("cpu", MAC, ("cpu", None)),
        ("cuda", LINUX, ("cuda", None)),
    ],
)
def test_choice(spec: str, host: Host, expected: tuple[str | None, str | None]) -> None:
    assert choose_device(spec, host, (HERE,)) == expected


def test_another_release_is_not_this_mac() -> None:
    other = Target(framework="torch", version="2.15.0")
    assert choose_device("mps", MAC, (other,)) == ("mps", None)


def test_the_simulator_is_every_target() -> None:
    assert choose_device("metal-sim", LINUX, (HERE,)) == ("metal-sim", None)
    assert simulated_target("metal-sim", ("torch==2.9.1",)) == ("metal-sim", ("torch==2.9.1",))
    named = simulated_target("metal-sim:2.9.1,macos=15.5", ())
    assert named == ("metal-sim", ("torch==2.9.1,macos=15.5",))
    assert simulated_target("cpu", ("torch==2.9.1",)) == ("cpu", ("torch==2.9.1",))
    with pytest.raises(UsageError, match="both name a release"):
        simulated_target("metal-sim:2.9.1", ("torch==2.15.0",))


def test_autocast_needs_a_dtype_it_can_cast_to_and_a_device() -> None:
    assert choose_autocast(None, None) == ()
    assert choose_autocast("float16,bfloat16", "cpu") == ("float16", "bfloat16")
    with pytest.raises(UsageError, match="cannot cast to 'float8'"):
        choose_autocast("float8", "cpu")
    with pytest.raises(UsageError, match="needs a device"):
        choose_autocast("float16", None)
    with pytest.raises(UsageError, match="own dtypes only"):
        choose_autocast("float16", "metal-sim")


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UsageError, match="no device"):
        choose_device("tpu", LINUX, (HERE,))


def test_the_simulator_runs_no_whole_steps() -> None:
    with pytest.raises(UsageError, match="single ops only"):
        choose_whole(2, None, "metal-sim")
    assert choose_whole(2, "8", "cuda") == (8,)


def test_flags_about_runs_need_a_device() -> None:
    require_device(["--timing"], "cpu")
    require_device([], None)
    with pytest.raises(UsageError, match="--timing needs a device"):
        require_device(["--timing"], None)


def test_only_the_simulator_chooses_how_approximate_functions_err() -> None:
    assert choose_ulp("nearest", "mps") == choose_ulp("nearest", "metal-sim") == {}
    assert choose_ulp("worst", "metal-sim") == {"ulp": "worst"}
    with pytest.raises(UsageError, match="only the simulator"):
        choose_ulp("worst", "mps")


def test_batch_sizes_rise_and_stand_once() -> None:
    assert batch_sizes("32, 8,8,16") == (8, 16, 32)
    assert batch_sizes(None) == ()


def scan(folder: Path, device: str, *more: str) -> tuple[int, dict[str, object]]:
    (folder / "net.py").write_text(MODEL)
    command = [sys.executable, "-m", "scanner", "net.py", "--device", device, "-f", "json"]
    done = subprocess.run(
        [*command, "--target", "torch==2.9.1", *more],
        cwd=folder,
        env=os.environ | {"XDG_DATA_HOME": str(folder / "data"), "HOME": str(folder)},
        capture_output=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_a_gate_that_must_fail_does(tmp_path: Path) -> None:
    drill = "drill:nan=aten::sigmoid,abort=aten::linear"
    code, report = scan(tmp_path, drill, "--repro", "bugs")
    [model] = report["models"]  # type: ignore[misc]
    rules = {finding["op"]: finding["rule"] for finding in model["findings"]}
    assert rules == {"aten::sigmoid": "OPS202", "aten::linear": "OPS203"}
    assert code == 1
    issues = {path.name[:-12]: path.read_text() for path in (tmp_path / "bugs").glob("*.md")}
    assert issues.keys() == {"aten-sigmoid-float32", "aten-linear-float32"}
    assert "**confirmed**: the script exited with 1" in issues["aten-sigmoid-float32"]
    assert "**confirmed**: the script's process was killed by SIG" in issues["aten-linear-float32"]
    assert len(list((tmp_path / "bugs").glob("*.py"))) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("net.py", "--repro", "bugs"), b"--repro bugs needs a device"),
        (("net.py", "--device", "cpu", "--repro", "."), b"--repro .: it holds other files (net.py"),
        (("net.py", "--device", "cpu", "--repro", "net.py"), b"--repro net.py: cannot be written"),
        (("sweep", "--device", "cpu", "--repro", "net.py"), b"--repro net.py: cannot be written"),
    ],
)
def test_a_folder_for_scripts_is_seen_to_first(
    tmp_path: Path, arguments: tuple[str, ...], said: bytes
) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    refused = opscan(tmp_path, *arguments)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert b"Traceback" not in refused.stderr


def test_the_cpu_agrees_with_itself(tmp_path: Path) -> None:
    code, report = scan(tmp_path, "cpu")
    [model] = report["models"]  # type: ignore[misc]
    assert model["findings"] == []
    statuses = {row["measurement"]["status"] for row in model["ops"] if row["measurement"]}
    assert statuses <= {"native", "skipped"}
    assert "native" in statuses
    assert code == 0


def test_whole_steps_name_the_op_that_parts_from_the_cpu(tmp_path: Path) -> None:
    code, report = scan(
        tmp_path, "drill:bias=aten::sigmoid", "--steps", "2", "--batch", "2,6", "--mode", "infer"
    )
    [model] = report["models"]  # type: ignore[misc]
    assert sorted(finding["rule"] for finding in model["findings"]) == ["OPS201", "OPS204"]
    run, sweep = model["accumulated"], model["batches"]
    assert (run["steps"], run["incomplete"]) == (2, "")
    assert (run["first"]["op"], run["first"]["phase"]) == ("aten::sigmoid", "forward")
    assert run["first"]["location"]["line"] == 10
    assert [point["batch"] for point in sweep["points"]] == [2, 6]
    assert sweep["best"] in (2, 6)
    assert code == 1


def test_what_one_machine_measured_serves_another(tmp_path: Path) -> None:
    scan(tmp_path, "cpu")
    exported = opscan(tmp_path, "db", "measurements").stdout
    assert exported.count(b"\n") >= 2
    (tmp_path / "measured.jsonl").write_bytes(exported)
    there = tmp_path / "there"
    there.mkdir()
    added = opscan(there, "db", "import", str(tmp_path / "measured.jsonl"))
    assert added.stdout.startswith(b"%d added, 0 replaced" % exported.count(b"\n"))
    again = opscan(there, "db", "import", str(tmp_path / "measured.jsonl"))
    assert b"0 added, 0 replaced" in again.stdout
    assert opscan(there, "db", "measurements").stdout == exported


def test_a_line_that_is_no_measurement_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    refused = opscan(tmp_path, "db", "import", "bad.jsonl")
    assert refused.returncode == 2
    assert b"bad.jsonl:1: not a measurement" in refused.stderr


def opscan(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "scanner", *arguments],
        cwd=folder,
        env=os.environ | {"XDG_DATA_HOME": str(folder / "data"), "HOME": str(folder)},
        capture_output=True,
        check=False,
    )


def test_a_release_that_is_not_prepared_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    simulate = ("net.py", "--device", "metal-sim", "--target", "torch==2.9.1")
    done = opscan(tmp_path, *simulate)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        "opscan: error: torch 2.9.1 is not prepared for the simulator",
        "  Run `opscan sim prepare torch==2.9.1` once: some minutes and a download.",
    ]
    timed = opscan(tmp_path, *simulate, "--timing")
    assert timed.returncode == 2
    assert b"says nothing about speed" in timed.stderr
