"""`opscan --static`, from the command line to exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Invoke

CUDA = "import torch\nmodel.cuda()\n"
WIDE = "import torch\nx = torch.zeros(3, dtype=torch.float64)\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scanner.cli.static._cache", lambda: tmp_path / "cache" / "source.sqlite")


@pytest.mark.parametrize(
    ("content", "arguments", "code"),
    [
        ("import torch\n", ("a.py",), 0),
        (CUDA, ("a.py",), 1),
        (CUDA, ("a.py", "--fail-on", "never"), 0),
        (WIDE, (".",), 0),
        (WIDE, (".", "--fail-on", "warning"), 1),
        (CUDA + "(", ("a.py",), 2),
        (CUDA + "(", (".",), 3),
        (CUDA + "(", (".", "--allow-incomplete"), 0),
        ("", ("gone.py",), 2),
    ],
)
def test_exit_codes(
    invoke: Invoke, tmp_path: Path, content: str, arguments: tuple[str, ...], code: int
) -> None:
    (tmp_path / "a.py").write_text(content)
    assert invoke("--static", *arguments, "-f", "concise").code == code


def test_concise_output_has_a_line_for_each_finding(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    assert invoke("--static", "a.py", "-f", "concise").out == (
        "a.py:2:1: OPS601 error .cuda() needs CUDA, which no Mac has\n"
    )


def test_the_report_has_findings_about_source_and_no_models(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    report = json.loads(invoke("--static", ".", "-f", "json").out)
    assert (report["models"], report["source"]["files"], report["exit_code"]) == ([], 1, 1)
    (finding,) = report["source"]["findings"]
    assert finding["fix"] == {
        "description": "Use a device that is chosen at run time",
        "safe": False,
    }


def test_standard_input_is_read(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(CUDA.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert invoke("--static", "-", "-f", "concise").out.startswith("<stdin>:2:1: OPS601")


@pytest.mark.parametrize("option", ["--device=cpu", "--steps=3", "--timing", "--inputs=x=1:int64"])
def test_what_needs_the_model_to_run_is_refused(invoke: Invoke, option: str) -> None:
    result = invoke("--static", ".", option)
    assert result.code == 2
    assert f"{option.partition('=')[0]} needs the model to be run" in result.err


def test_a_file_is_never_run(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nopen('ran', 'w')\n")
    assert invoke("--static", "a.py").code == 0
    assert not (tmp_path / "ran").exists()
