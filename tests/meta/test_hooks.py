"""The pre-commit hooks, in a real repository with real pre-commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CUDA = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"
MODEL = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.eig(x)[0].abs()


model = Net()
example_inputs = (torch.rand(3, 3),)
"""


def execute(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(folder.parent / "pre-commit"),
        "XDG_CACHE_HOME": str(folder.parent / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300
    )


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = execute(folder, "git", *who, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(folder: Path, config: object, **files: str) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    git(folder, "add", ".")
    return folder


def test_the_manifest_is_one_that_pre_commit_reads() -> None:
    done = execute(ROOT, "pre-commit", "validate-manifest", ".pre-commit-hooks.yaml")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def local(hook: str, **more: object) -> dict[str, object]:
    """The hook as the manifest has it, run by the opscan under test."""
    (found,) = [
        each
        for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
        if each["id"] == hook
    ]
    return {"repos": [{"repo": "local", "hooks": [{**found, "language": "system", **more}]}]}


def test_changed_files_are_read(tmp_path: Path) -> None:
    config = local("opscan-static", args=["--fail-on", "warning"])
    folder = repository(tmp_path / "one", config, train=CUDA, plain="x = 1\n")
    done = execute(folder, "pre-commit", "run")
    assert done.returncode == 1
    assert "train.py" in done.stdout
    assert "OPS601" in done.stdout
    (folder / "train.py").write_text(CUDA.replace(".cuda()", ""))
    git(folder, "add", ".")
    done = execute(folder, "pre-commit", "run")
    assert done.returncode == 0, done.stdout


def test_a_model_is_captured_before_a_push(tmp_path: Path) -> None:
    config = local("opscan", args=["net.py", "--target", "torch==2.9.1"])
    folder = repository(tmp_path / "one", config, net=MODEL)
    assert execute(folder, "pre-commit", "run").returncode == 0
    done = execute(folder, "pre-commit", "run", "--hook-stage", "pre-push", "--all-files")
    assert done.returncode == 1
    assert "linalg_eig" in done.stdout


@pytest.mark.hooks
def test_the_hook_installs_itself(tmp_path: Path) -> None:
    """As a user has it: pre-commit clones this repository and makes an environment for it."""
    source = tmp_path / "opscan"
    git(tmp_path, "clone", "-q", str(ROOT), str(source))
    revision = git(source, "rev-parse", "HEAD")
    hooks = [{"id": "opscan-static", "args": ["--fail-on", "warning"]}]
    config = {"repos": [{"repo": str(source), "rev": revision, "hooks": hooks}]}
    folder = repository(tmp_path / "one", config, train=CUDA)
    done = execute(folder, "pre-commit", "run")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "train.py" in done.stdout
    assert "OPS601" in done.stdout
