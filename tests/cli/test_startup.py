"""What must not be imported, and what must work where torch is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("torch", "numpy", "tensorflow", "libcst", "jinja2", "yaml", "lief", "capstone"),
    *("unicorn", "llvmlite", "ziglang"),
)
SLOW = ("rich", "packaging", "platformdirs", "importlib.metadata", "asyncio", "multiprocessing")

RUN = """
import json, sys
blocked = {blocked!r}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
before = set(sys.modules)
sys.argv = ["opscan", *{arguments!r}]
from scanner.__main__ import main
code = main()
print(json.dumps([code, sorted(set(sys.modules) - before)]), file=sys.stderr)
"""


def modules_of(
    *arguments: str, blocked: tuple[str, ...] = HEAVY, cwd: Path = ROOT
) -> tuple[int, set[str], str]:
    """Exit code, modules imported and standard output of one command line, run on its own."""
    code = RUN.format(blocked=blocked, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    status, modules = json.loads(done.stderr.splitlines()[-1])
    return status, set(modules), done.stdout


def test_version_imports_nothing() -> None:
    for flag in ("--version", "-V"):
        code, modules, out = modules_of(flag)
        assert (code, out.split()[0]) == (0, "opscan")
        assert modules <= {"scanner", "scanner.__main__"} | {"__future__"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("scan", "--help"),
        ("db", "op", "--help"),
        ("sim", "op", "--help"),
        ("explain", "OPS101"),
        ("explain", "aten::mm"),
        ("db", "op", "aten::kthvalue.values", "--torch", "2.5.1"),
        ("db", "op", "aten::mm", "-f", "json"),
        ("db", "list", "eigh", "--torch", "2.9.1"),
        ("db", "export", "--torch", "2.9.1"),
        ("db", "check"),
        ("baseline", "write", "--help"),
        ("doctor", "--settings"),
        ("completion", "zsh"),
    ],
    ids=" ".join,
)
def test_works_without_torch_and_imports_nothing_slow(arguments: tuple[str, ...]) -> None:
    code, modules, out = modules_of(*arguments)
    assert code == 0
    assert out
    roots = {name.split(".")[0] for name in modules}
    assert not roots & set(HEAVY)
    assert not modules & set(SLOW)


def test_a_static_scan_imports_nothing_slow_and_no_framework(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nmodel.cuda()\n")
    code, modules, out = modules_of("--static", ".", "-f", "concise", blocked=(), cwd=tmp_path)
    assert code == 1
    assert out.startswith("a.py:2:1: OPS601")
    assert not {name.split(".")[0] for name in modules} & {*HEAVY, *SLOW, "sqlite3"}
    assert not any(name.startswith(("scanner.capture", "scanner.probe")) for name in modules)


@pytest.mark.parametrize(
    ("code", "needed"), [("x = torch.cuda.current_device()\n", False), ("model.cuda()\n", True)]
)
def test_fix_imports_libcst_only_for_corrections(tmp_path: Path, code: str, needed: bool) -> None:
    (tmp_path / "a.py").write_text(f"import torch\n{code}")
    _, modules, _ = modules_of("fix", "--unsafe", ".", blocked=(), cwd=tmp_path)
    assert ("libcst" in modules) is needed
    assert "torch" not in modules


def test_db_op_imports_only_what_it_needs() -> None:
    _, modules, _ = modules_of("db", "op", "aten::mm", "--torch", "2.9.1")
    ours = {name for name in modules if name.split(".")[0] == "scanner"}
    assert not any(
        name.startswith(("scanner.judge", "scanner.report", "scanner.capture")) for name in ours
    )


def test_a_scan_without_torch_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\nclass Net(torch.nn.Module): pass\n")
    code, modules, _ = modules_of("gone.py", cwd=tmp_path)
    assert code == 2
    assert "torch" not in modules


def test_the_parent_of_a_scan_never_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\nraise SystemExit(3)\n")
    code, modules, _ = modules_of("model.py", "--timeout", "100", cwd=tmp_path)
    assert code in {2, 3}
    assert not {name.split(".")[0] for name in modules} & {"torch", "numpy", "tensorflow"}
