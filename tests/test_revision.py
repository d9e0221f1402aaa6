"""Files of a git revision, beside a checkout that must not change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.revision import files_at


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two commits; then a staged file, a changed one and a deleted one."""
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / ".gitattributes").write_text("secret.py export-ignore\n")
    (tmp_path / "nets").mkdir()
    for name in ("nets/a.py", "secret.py", "gone.py"):
        (tmp_path / name).write_text(f"# {name} 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "v1")
    (tmp_path / "nets/a.py").write_text("# nets/a.py 2\n")
    git(tmp_path, "commit", "-qam", "second")
    (tmp_path / "nets/a.py").write_text("# nets/a.py 3\n")
    (tmp_path / "staged.py").write_text("")
    git(tmp_path, "add", "staged.py")
    (tmp_path / "gone.py").unlink()
    return tmp_path


def state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("ref", "number"), [("v1", 1), ("HEAD~1", 1), ("trunk", 2)])
def test_files_are_those_of_the_revision(checkout: Path, ref: str, number: int) -> None:
    before = state(checkout)
    with files_at(ref, checkout / "nets", os.environ) as found:
        assert (found.cwd / "a.py").read_text() == f"# nets/a.py {number}\n"
        assert (found.root / "secret.py").is_file()  # `git archive` would leave it out
        assert (found.root / "gone.py").is_file()
        assert not (found.root / "staged.py").exists()
        assert found.name.startswith(f"{ref} (")
        root = found.root
    assert not root.exists()
    assert state(checkout) == before


def test_variables_of_a_hook_do_not_lead_elsewhere(checkout: Path, tmp_path: Path) -> None:
    hook = os.environ | {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index"}
    with files_at("trunk", checkout, hook) as found:
        assert (found.root / "nets/a.py").is_file()


def test_paths_of_the_checkout_are_moved(checkout: Path) -> None:
    with files_at("trunk", checkout, os.environ) as found:
        top, root = str(checkout.resolve()), str(found.root)
        assert found.moved(f"{top}/nets/a.py:Net") == f"{root}/nets/a.py:Net"
        assert found.moved(f"/usr/lib:{top}:{top}/src") == f"/usr/lib:{root}:{root}/src"
        assert found.moved(f"{top}-other/a.py") == f"{top}-other/a.py"
        assert found.moved("nets/a.py") == "nets/a.py"


def test_without_git_it_says_so(checkout: Path) -> None:
    with (
        pytest.raises(UsageError, match="git is not installed"),
        files_at("trunk", checkout, {"PATH": "/nowhere"}),
    ):
        pass
