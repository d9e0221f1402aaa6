"""The GitHub action: its file, and its script run as the runner runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".github" / "action" / "scan.sh"
CLEAN = "import torch\n\n\ndef double(x: torch.Tensor) -> torch.Tensor:\n    return x + x\n"
CUDA = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


def steps(action: dict[str, Any]) -> list[dict[str, Any]]:
    return list(action["runs"]["steps"])


def test_no_input_is_written_into_a_script(action: dict[str, Any]) -> None:
    """Whoever writes an input would otherwise write the script."""
    scripts = [step["run"] for step in steps(action) if "run" in step]
    assert scripts
    assert not [script for script in scripts if "${{" in script]


def test_other_actions_are_pinned(action: dict[str, Any]) -> None:
    used = [step["uses"] for step in steps(action) if "uses" in step]
    assert used
    assert not [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)]


def test_every_input_is_used_and_every_output_is_made(action: dict[str, Any]) -> None:
    whole = json.dumps(action["runs"])
    assert [name for name in action["inputs"] if f"inputs.{name}" not in whole] == []
    script = SCRIPT.read_text()
    assert [name for name in action["outputs"] if f"{name}=" not in script] == []
    passed = {key for step in steps(action) for key in step.get("env", {})}
    read = set(re.findall(r"ACTION_\w+", script))
    assert read <= passed


def run(tmp_path: Path, models: str, **inputs: str) -> tuple[dict[str, str], str, str]:
    """Outputs, the step's summary, and what was printed."""
    outputs, summary = tmp_path / "outputs", tmp_path / "summary"
    outputs.touch()
    summary.touch()
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OPSCAN_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "ACTION_MODELS": models,
        "ACTION_STATIC": "true",
        **inputs,
    }
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pairs = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return pairs, summary.read_text(), done.stdout


def test_findings_fail_the_job_after_everything_was_written(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CUDA)
    outputs, summary, printed = run(tmp_path, "train.py\n", ACTION_FAIL_ON="warning")
    assert (outputs["exit-code"], outputs["verdict"]) == ("1", "findings")
    assert "train.py" in summary
    assert re.search(r"^::(error|warning) .*file=train.py,line=3", printed, re.M)
    sarif = json.loads(Path(outputs["sarif"]).read_text())
    assert sarif["runs"][0]["results"]
    report = json.loads(Path(outputs["report"]).read_text())
    assert int(outputs["warnings"]) == report["summary"]["warnings"]
    assert int(outputs["errors"]) == report["summary"]["errors"]


def test_a_clean_file_passes(tmp_path: Path) -> None:
    (tmp_path / "a file, with 'marks'.py").write_text(CLEAN)
    outputs, _, _ = run(tmp_path, "  a file, with 'marks'.py  \n\n")
    assert (outputs["exit-code"], outputs["verdict"]) == ("0", "passed")


def test_a_failed_scan_is_no_pass(tmp_path: Path) -> None:
    outputs, _, _ = run(tmp_path, "missing.py")
    assert (outputs["exit-code"], outputs["verdict"]) == ("2", "failed")
    assert "sarif" not in outputs


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"models": "--output=/etc/passwd"}, "begins with a dash"),
        ({"models": " \n\t\n"}, "nothing to scan"),
        ({"models": "train.py", "ACTION_TARGET": "-v"}, "begins with a dash"),
    ],
)
def test_inputs_cannot_be_options(tmp_path: Path, inputs: dict[str, str], said: str) -> None:
    outputs, _, printed = run(tmp_path, inputs.pop("models"), **inputs)
    assert outputs["exit-code"] == "2"
    assert said in printed


def test_an_input_is_never_a_command(tmp_path: Path) -> None:
    outputs, _, _ = run(tmp_path, "$(touch made).py; touch made\n`touch made`")
    assert outputs["exit-code"] == "2"
    assert not (tmp_path / "made").exists()
