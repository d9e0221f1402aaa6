"""Which files a path means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scanner.errors import SourceError
from scanner.source.discover import source_files


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def named(arguments: list[str], cwd: Path) -> list[str]:
    return [file.name for file in source_files(arguments, str(cwd))]


def test_directories_are_walked_in_order_and_without_what_is_not_source(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a.py", "c.txt", "p/z.py", "p/a.py", ".git/x.py", "build/x.py")
    make(tmp_path, "mine/pyvenv.cfg", "mine/lib/x.py", "a/x.py", "p/__pycache__/x.py")
    assert named(["."], tmp_path) == ["a.py", "b.py", "a/x.py", "p/a.py", "p/z.py"]


def test_what_is_named_is_taken_whatever_it_is_called(tmp_path: Path) -> None:
    make(tmp_path, "build/x.py", "script", ".hidden/y.py")
    assert named(["script", "build", ".hidden"], tmp_path) == [
        "script",
        "build/x.py",
        ".hidden/y.py",
    ]


def test_each_file_comes_once_and_named_files_are_marked(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "p/b.py")
    files = source_files(["p/b.py", "./p", "a.py", ".", "-"], str(tmp_path))
    assert [(file.name, file.asked) for file in files] == [
        ("p/b.py", True),
        ("a.py", True),
        ("<stdin>", True),
    ]


def test_links_that_lead_round_in_circles_end(tmp_path: Path) -> None:
    make(tmp_path, "p/a.py")
    (tmp_path / "p" / "again").symlink_to(tmp_path)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    (tmp_path / "to.py").symlink_to(tmp_path / "p" / "a.py")
    assert named(["."], tmp_path) == ["to.py", "p/a.py"]


def test_what_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone\.py: no such file"):
        source_files(["gone.py"], str(tmp_path))


def test_files_elsewhere_have_their_whole_path(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    (name,) = named([str(tmp_path)], tmp_path.parent / "other")
    assert name == (tmp_path / "a.py").as_posix()
    assert os.path.isabs(name)  # noqa: PTH117


def test_an_empty_path_is_not_the_working_directory(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="an empty path"):
        source_files([""], str(tmp_path))
