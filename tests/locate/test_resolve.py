"""What a MODEL argument means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scanner.errors import LocateError, UsageError
from scanner.locate.resolve import display_path, resolve

MODEL = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x): return x\n"


@pytest.mark.parametrize(
    ("argument", "name"),
    [("net.py", None), ("net.py:Net", "Net"), ("net.py:a.B", "a.B"), ("net.py:build()", "build")],
)
def test_file(tmp_path: Path, argument: str, name: str | None) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    (source,) = resolve(argument, tmp_path)
    assert source.path == tmp_path / "net.py"
    assert source.module is None
    assert source.name == name
    assert source.argument == argument


@pytest.mark.parametrize(
    ("argument", "module", "name"),
    [("pkg.net", "pkg.net", None), ("pkg.net:Net", "pkg.net", "Net"), ("net", "net", None)],
)
def test_module(tmp_path: Path, argument: str, module: str, name: str | None) -> None:
    (source,) = resolve(argument, tmp_path)
    assert (source.path, source.module, source.name) == (None, module, name)


def test_absolute_path_and_parent(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "sub").mkdir()
    for argument in (str(tmp_path / "net.py"), "../net.py"):
        (source,) = resolve(argument, tmp_path / "sub")
        assert source.path == tmp_path / "net.py"


def test_a_file_whose_name_holds_a_colon_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a:b.py").write_text(MODEL)
    (source,) = resolve("a:b.py", tmp_path)
    assert (source.path, source.name) == (tmp_path / "a:b.py", None)


@pytest.mark.parametrize("argument", [r"C:\models\net.py", r"C:\models\net.py:Net"])
def test_windows_drive_is_no_name(tmp_path: Path, argument: str) -> None:
    with pytest.raises(LocateError) as caught:
        resolve(argument, tmp_path)
    assert caught.value.message == r"C:\models\net.py: no such file"


def test_missing_file_suggests_similar_ones(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MODEL)
    with pytest.raises(LocateError) as caught:
        resolve("trian.py", tmp_path)
    assert caught.value.message == "trian.py: no such file"
    assert caught.value.remedy == "did you mean train.py?"


@pytest.mark.parametrize("argument", ["nothing.py", "no/where.py:Net", "weights.pt"])
def test_missing_file(tmp_path: Path, argument: str) -> None:
    with pytest.raises(LocateError, match="no such file") as caught:
        resolve(argument, tmp_path)
    assert "relative to the current directory" in caught.value.remedy


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("a.ipynb", "nbconvert"),
        ("a.pt", "weights"),
        ("a.safetensors", "weights"),
        ("a.txt", "give"),
    ],
)
def test_no_python_file(tmp_path: Path, file: str, remedy: str) -> None:
    (tmp_path / file).write_text("")
    with pytest.raises(LocateError, match="not a Python file") as caught:
        resolve(file, tmp_path)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("argument", ["", "  ", "net.py:", "net.py:a-b", ":Net", "a b", "x!"])
def test_no_valid_form(tmp_path: Path, argument: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(argument, tmp_path)
    assert "package.module:name" in caught.value.remedy


def test_name_after_directory(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    with pytest.raises(UsageError, match="not a directory") as caught:
        resolve("models:Net", tmp_path)
    assert caught.value.remedy == "name the file that defines Net"


def test_directory(tmp_path: Path) -> None:
    for name in ("b.py", "a/net.py", "a/other.py"):
        path = tmp_path / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODEL if "other" not in name else "x = 1\n")
    sources = resolve("models", tmp_path)
    assert [source.argument for source in sources] == ["models/b.py", "models/a/net.py"]
    assert all(source.path and source.path.is_absolute() for source in sources)


def test_directory_without_models(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("print('torch')\n")
    with pytest.raises(LocateError, match="no Python file below this directory") as caught:
        resolve(".", tmp_path)
    assert "opscan_model()" in caught.value.remedy


def test_display_path(tmp_path: Path) -> None:
    assert display_path(tmp_path / "a" / "b.py", tmp_path) == "a/b.py"
    assert display_path(tmp_path / "b.py", tmp_path / "a") == (tmp_path / "b.py").as_posix()


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, pathlib; from scanner.locate.resolve import resolve;"
        "from scanner.locate.spec import parse_inputs; from scanner.locate.guard import protect;"
        "from scanner.locate.load import load; from scanner.locate.interface import Source;"
        "parse_inputs('1x3'); resolve('a.b', pathlib.Path()); print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
