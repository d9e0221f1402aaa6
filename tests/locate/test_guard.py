"""Writes of user code below the working directory are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scanner.locate.guard import Guard

RUN = """
import os, pathlib, shutil, sqlite3, sys, tempfile
from scanner.locate.guard import protect
root = pathlib.Path(sys.argv[1])
os.chdir(root)
guard = protect([root])
try:
    {action}
    print("done")
except PermissionError as error:
    print(error)
guard.active = False
print(guard.refused)
"""


def attempt(root: Path, action: str) -> list[str]:
    """What the action prints in a protected directory that holds `kept.txt` and `there/`."""
    (root / "kept.txt").write_text("kept")
    (root / "there").mkdir(exist_ok=True)
    code = RUN.replace("{action}", action)
    run = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("open('new.txt', 'w')", "new.txt"),
        ("open('kept.txt', 'a')", "kept.txt"),
        ("open('kept.txt', 'r+')", "kept.txt"),
        ("open('new.txt', 'xb')", "new.txt"),
        ("os.open('new.txt', os.O_WRONLY | os.O_CREAT)", "new.txt"),
        ("pathlib.Path('new.txt').touch()", "new.txt"),
        ("pathlib.Path('kept.txt').write_text('x')", "kept.txt"),
        ("os.remove('kept.txt')", "kept.txt"),
        ("os.rename('kept.txt', 'b.txt')", "kept.txt"),
        ("os.replace('kept.txt', 'b.txt')", "kept.txt"),
        ("os.mkdir('new')", "new"),
        ("os.makedirs('new/deep', exist_ok=True)", "new"),
        ("os.rmdir('there')", "there"),
        ("shutil.rmtree('there')", "there"),
        ("shutil.copy('kept.txt', 'b.txt')", "b.txt"),
        ("os.truncate('kept.txt', 0)", "kept.txt"),
        ("os.chmod('kept.txt', 0)", "kept.txt"),
        ("os.symlink('kept.txt', 'b.txt')", "b.txt"),
        ("os.link('kept.txt', 'b.txt')", "b.txt"),
        ("sqlite3.connect('new.db')", "new.db"),
        ("open(root / 'there' / '..' / 'new.txt', 'w')", "new.txt"),
        ("os.symlink('/', os.path.join(tempfile.mkdtemp(), 'x')); open('n', 'w')", "n"),
    ],
)
def test_refused(tmp_path: Path, action: str, path: str) -> None:
    said, refused = attempt(tmp_path, action)
    assert said == f"opscan is scanning this code and refused to write {path}"
    assert refused == str([path])
    assert (tmp_path / "kept.txt").read_text() == "kept"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept.txt", "there"]


@pytest.mark.parametrize(
    "action",
    [
        "assert open('kept.txt').read() == 'kept'",
        "os.listdir('.')",
        "os.makedirs('there', exist_ok=True)",
        "tempfile.TemporaryFile().write(b'x')",
        "tempfile.TemporaryDirectory().cleanup()",
        "open(os.devnull, 'w').write('x')",
        "sqlite3.connect(':memory:')",
        "shutil.copy('kept.txt', tempfile.mkdtemp())",
    ],
)
def test_allowed(tmp_path: Path, action: str) -> None:
    assert attempt(tmp_path, action) == ["done", "[]"]


def test_torch_save_is_covered(tmp_path: Path) -> None:
    action = "guard.cover_torch(); import torch; torch.save({}, 'model.pt')"
    said, refused = attempt(tmp_path, action)
    assert said == "opscan is scanning this code and refused to write model.pt"
    assert refused == "['model.pt']"
    assert not (tmp_path / "model.pt").exists()


def test_torch_save_elsewhere(tmp_path: Path) -> None:
    action = (
        "guard.cover_torch(); import torch, io; torch.save({}, io.BytesIO());"
        "torch.save({}, os.path.join(tempfile.mkdtemp(), 'x.pt'))"
    )
    assert attempt(tmp_path, action) == ["done", "[]"]


def test_no_bytecode_is_written(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    assert attempt(tmp_path, "sys.path.insert(0, '.'); import helper") == ["done", "[]"]
    assert not (tmp_path / "__pycache__").exists()


def test_a_written_link_to_a_protected_file_is_followed(tmp_path: Path) -> None:
    action = (
        "link = os.path.join(tempfile.mkdtemp(), 'link'); os.symlink(root / 'kept.txt', link);"
        "open(link, 'w')"
    )
    assert attempt(tmp_path, action)[0].endswith("refused to write kept.txt")


def test_the_deepest_root_decides(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    allowed_inside = Guard([outer], [inner])
    allowed_inside.check(inner / "a")
    with pytest.raises(PermissionError, match="refused to write a"):
        allowed_inside.check(outer / "a")
    protected_inside = Guard([inner], [outer])
    protected_inside.check(outer / "a")
    with pytest.raises(PermissionError):
        protected_inside.check(inner / "a")


def test_a_similar_name_is_not_below(tmp_path: Path) -> None:
    Guard([tmp_path / "proj"], []).check(tmp_path / "project" / "a")


def test_notes_name_each_path_once(tmp_path: Path) -> None:
    guard = Guard([tmp_path], [])
    for name in ("b", "a", "b"):
        with pytest.raises(PermissionError):
            guard.check(tmp_path / name)
    assert guard.notes() == (
        "the file tried to write b; opscan refused",
        "the file tried to write a; opscan refused",
    )


def test_an_inactive_guard_lets_everything_pass(tmp_path: Path) -> None:
    guard = Guard([tmp_path], [])
    guard.active = False
    guard.hook("open", (str(tmp_path / "a"), "w", 0))
    assert guard.refused == []
