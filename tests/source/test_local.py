"""Which modules are the user's own."""

from __future__ import annotations

from pathlib import Path

from scanner.source.local import with_local_imports


def make(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path, *names: str) -> list[str]:
    paths = with_local_imports([root / name for name in names], root)
    return [path.relative_to(root).as_posix() for path in paths]


def test_imports_are_followed_through_packages_and_dots(tmp_path: Path) -> None:
    make(
        tmp_path,
        train="import torch, helper\nfrom net.block import Block\n",
        helper="import train",
        net__block="from . import part\nfrom ..other import x",
        net__part="def f(): import late",
        late="",
        other="",
        unused="",
    )
    (tmp_path / "net" / "__init__.py").write_text("")
    assert found(tmp_path, "train.py") == [
        "train.py",
        "helper.py",
        "net/__init__.py",
        "net/block.py",
        "net/part.py",
        "other.py",
        "late.py",
    ]


def test_modules_beside_the_file_come_before_those_of_the_working_directory(tmp_path: Path) -> None:
    make(tmp_path, a__train="import helper\nimport there", a__helper="", helper="", there="")
    assert found(tmp_path, "a/train.py") == ["a/train.py", "a/helper.py", "there.py"]


def test_what_cannot_be_parsed_imports_nothing(tmp_path: Path) -> None:
    make(tmp_path, train="import helper\n(", helper="")
    assert found(tmp_path, "train.py", "gone.py") == ["train.py", "gone.py"]
