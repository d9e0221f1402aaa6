"""The program as users run it: a process, a real child, real torch. Mostly what goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGET = ("--target", "torch==2.9.1")

GOOD = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x).softmax(-1)
"""
BAD = """
import torch

class Spectral(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.linalg.eigvalsh(self.layer(x))

def opscan_model():
    return Spectral(), (torch.randn(4, 4),)
"""
NEEDS_ARGUMENTS = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layer = torch.nn.Linear(width, depth)

    def forward(self, x):
        return self.layer(x)
"""
RAISES = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        raise RuntimeError("not ready yet")
"""


def opscan(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "scanner", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_a_model_that_mps_runs(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    done = opscan(tmp_path, "good.py", *TARGET)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("no errors, no warnings in 1 model and 1 file on torch 2.9.1\n")
    assert done.stderr == ""


def test_a_model_that_mps_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    done = opscan(tmp_path, "bad.py", *TARGET, "-f", "json")
    assert done.returncode == 1
    (model,) = json.loads(done.stdout)["models"]
    (finding,) = (each for each in model["findings"] if each["rule"] == "OPS101")
    assert finding["op"] == "aten::_linalg_eigh"
    assert finding["fixed_in"] == "2.14.0"
    assert finding["location"]["file"] == "bad.py"
    assert finding["location"]["code"] == "return torch.linalg.eigvalsh(self.layer(x))"


def test_the_order_of_execution_is_that_of_the_step(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    done = opscan(tmp_path, "bad.py", *TARGET, "-f", "json", "--report", "html=page.html")
    (model,) = json.loads(done.stdout)["models"]
    (order,) = model["order"]
    assert order["targets"] == ["torch==2.9.1"]
    assert Counter(order["rows"]) == {row: op["calls"] for row, op in enumerate(model["ops"])}
    ops = [model["ops"][row]["op"] for row in order["rows"]]
    assert ops.index("aten::linear") < ops.index("aten::_linalg_eigh")
    firsts = list(dict.fromkeys(order["rows"]))
    assert firsts == sorted(firsts)
    assert "calls in order of execution" in (tmp_path / "page.html").read_text("utf-8")


def test_the_same_scan_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    first, second = (opscan(tmp_path, "bad.py", *TARGET, "-f", "json").stdout for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("content", "arguments", "code", "message"),
    [
        ("import torch\ndef f(:\n", (), 2, "syntax error"),
        ("import torch\nimport not_there_at_all\n", (), 2, "not_there_at_all"),
        ("import torch\nx = 3\n", (), 2, "no model"),
        (RAISES, (":Nat",), 2, "did you mean Net?"),
        (GOOD, ("--inputs", "y=2x4"), 2, "'x'"),
        ("import torch\nraise ValueError('bad config')\n", (), 3, "ValueError: bad config"),
        ("import torch, time\ntime.sleep(900)\n", ("--timeout", "8"), 3, "longer than 8 s"),
        ("import torch, sys\nsys.exit(5)\n", (), 3, "exit"),
        ("import torch, os\nos._exit(5)\n", (), 3, "exited with code 5"),
        ("import torch, os\nos.abort()\n", (), 3, "killed by SIGABRT"),
        ("import torch\nname = input()\n", (), 3, "standard input"),
        (NEEDS_ARGUMENTS, (), 3, "width"),
        (RAISES, (), 3, "not ready yet"),
    ],
    ids=[
        "syntax error",
        "missing package",
        "no model",
        "no such name",
        "inputs that do not fit",
        "raises on import",
        "never ends",
        "exits",
        "ends the process",
        "aborts",
        "reads stdin",
        "constructor needs arguments",
        "forward raises",
    ],
)
def test_what_is_wrong_is_said_and_other_models_are_reported(
    tmp_path: Path, content: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "model.py").write_text(content)
    (tmp_path / "good.py").write_text(GOOD)
    name = "model.py" + next((each for each in arguments if each.startswith(":")), "")
    options = [each for each in arguments if not each.startswith(":")]
    # --inputs would not fit the other model, nor --timeout the import of torch on a busy machine
    others = [] if options else ["good.py"]
    done = opscan(tmp_path, name, *others, *TARGET, *options, "-f", "json")
    assert done.returncode == code, done.stdout
    report = json.loads(done.stdout)
    failed, *judged = report["models"]
    (finding,) = failed["findings"]
    assert message in finding["message"]
    assert finding["remedy"]
    assert finding["rule"] == ("OPS903" if code == 2 else "OPS901")
    assert len(judged) == len(others)
    assert all(model["capture"]["complete"] for model in judged)


def test_a_directory(tmp_path: Path) -> None:
    for name, content in {"good.py": GOOD, "bad.py": BAD, "notes.py": "x = 1\n"}.items():
        (tmp_path / name).write_text(content)
    done = opscan(tmp_path, ".", *TARGET, "-f", "concise")
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["bad.py"]


def test_a_directory_without_models(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text("x = 1\n")
    done = opscan(tmp_path, ".", *TARGET)
    assert (done.returncode, done.stdout) == (2, "")
    assert "defines a model" in done.stderr


def test_names_like_ours_in_the_users_directory_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    for name in ("scanner", "opdb"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not opscan')\n")
    launcher = "import sys; sys.path[:0] = [sys.argv.pop(1)]; from scanner.__main__ import main; "
    done = subprocess.run(
        [sys.executable, "-c", launcher + "sys.exit(main())", str(ROOT), "good.py", *TARGET],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reader_may_leave_early(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    program = f"'{sys.executable}' -m scanner good.py --target torch==2.9.1 -v | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert "BrokenPipe" not in done.stderr
    assert "Exception" not in done.stderr
