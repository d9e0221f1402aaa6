"""`opscan fix`, from the command line to files and exit codes."""

from __future__ import annotations

import io
import runpy
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from scanner.cli.main import run
from scanner.fix import files
from tests.cli.conftest import Invoke

WIDE = "import torch\nx = torch.zeros(3, dtype=torch.float64)  # wide\n"
NARROW = WIDE.replace("float64", "float32")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scanner.cli.static._cache", lambda: tmp_path / "cache" / "source.sqlite")


def test_files_are_corrected_and_what_is_left_is_told(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WIDE + "x.cuda(1)\n")
    (tmp_path / "b.py").write_text("import torch\n")
    result = invoke("fix", ".", "--unsafe")
    assert (tmp_path / "a.py").read_text() == NARROW + "x.cuda(1)\n"
    assert result == type(result)(
        1,
        "a.py:3:1: OPS601 error .cuda() needs CUDA, which no Mac has\n"
        "a.py: OPS620 fixed\n"
        "1 finding fixed in 1 file; 1 error left.\n",
        "",
    )


def test_what_libcst_cannot_read_is_told_with_what_was_left(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WIDE + "(where): str\nx.cuda()\n")
    result = invoke("fix", "a.py", "--unsafe", "-q")
    assert (tmp_path / "a.py").read_text() == NARROW + "(where): str\nx.cuda()\n"
    assert result.out == "1 finding fixed in 1 file; 1 error left.\n"
    assert result.err == (
        "opscan: note: a.py: LibCST cannot read the file, so that no import and no definition of a "
        "device can be added to it; corrections that need one were left out\n"
    )


def test_a_second_run_changes_nothing(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WIDE)
    invoke("fix", "a.py", "--unsafe")
    before = (tmp_path / "a.py").stat()
    result = invoke("fix", "a.py", "--unsafe")
    assert (result.code, result.out) == (0, "0 findings fixed in 0 files; nothing is left.\n")
    assert (tmp_path / "a.py").stat().st_ino == before.st_ino


def test_unsafe_corrections_are_offered_and_not_made(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WIDE)
    result = invoke("fix", "a.py", "-q")
    assert result.out == (
        "0 findings fixed in 0 files; 1 warning left; --unsafe offers fixes for 1 of them.\n"
    )
    assert (tmp_path / "a.py").read_text() == WIDE


def test_a_diff_changes_nothing_and_can_be_applied(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WIDE.rstrip("\n"))
    result = invoke("fix", "a.py", "--unsafe", "--diff")
    assert result.code == 1
    assert result.out == (
        "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n import torch\n"
        "-x = torch.zeros(3, dtype=torch.float64)  # wide\n\\ No newline at end of file\n"
        "+x = torch.zeros(3, dtype=torch.float32)  # wide\n\\ No newline at end of file\n"
    )
    assert "OPS620 would be fixed" in result.err
    assert (tmp_path / "a.py").read_text() == WIDE.rstrip("\n")


@pytest.mark.parametrize(
    ("content", "arguments", "code"),
    [
        (NARROW, ("a.py",), 0),
        (NARROW, ("a.py", "--diff"), 0),
        (WIDE, ("a.py",), 0),
        (WIDE, ("a.py", "--fail-on", "warning"), 1),
        (WIDE, ("a.py", "--unsafe", "--fail-on", "warning"), 0),
        (WIDE, ("a.py", "--diff"), 0),
        (WIDE, ("a.py", "--diff", "--unsafe"), 1),
        (WIDE + "(", ("a.py",), 2),
        (WIDE + "(", ("a.py", "--diff"), 2),
        (WIDE + "(", (".",), 3),
        (WIDE + "(", (".", "--allow-incomplete"), 0),
        (WIDE, ("gone.py",), 2),
    ],
)
def test_exit_codes(
    invoke: Invoke, tmp_path: Path, content: str, arguments: tuple[str, ...], code: int
) -> None:
    (tmp_path / "a.py").write_text(content)
    assert invoke("fix", *arguments).code == code


def test_what_is_no_python_keeps_no_other_file_from_being_fixed(
    invoke: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text(WIDE + "(\n")
    (tmp_path / "b.py").write_text(WIDE)
    result = invoke("fix", "a.py", "b.py", "--unsafe")
    assert result.code == 2
    assert "a.py:3:1: OPS903" in result.out
    assert (tmp_path / "a.py").read_text() == WIDE + "(\n"
    assert (tmp_path / "b.py").read_text() == NARROW


@pytest.mark.parametrize(
    ("given", "wanted", "code"), [(WIDE, NARROW, 0), (WIDE + "(", WIDE + "(", 2)]
)
def test_standard_input_is_corrected_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, given: str, wanted: str, code: int
) -> None:
    content, out = given.replace("\n", "\r\n").encode(), io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, write_through=True))
    assert run(["fix", "-", "--unsafe", "--isolated"]) == code
    assert out.getvalue() == wanted.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + WIDE.encode(),
        b"# coding: latin-1\n" + WIDE.replace("wide", "\xe9").encode("latin-1"),
        WIDE.replace("\n", "\r\n").encode(),
        WIDE.rstrip("\n").encode(),
        WIDE.replace("\n", "\r").encode(),
        b"\x0c\n" + WIDE.encode(),
    ],
    ids=["mark", "latin-1", "crlf", "no-end", "cr", "form-feed"],
)
def test_how_a_file_is_written_is_kept(invoke: Invoke, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)
    assert invoke("fix", "a.py", "--unsafe").code == 0
    assert (tmp_path / "a.py").read_bytes() == content.replace(b"float64", b"float32")


def test_modes_are_kept_and_links_followed(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WIDE)
    (tmp_path / "a.py").chmod(0o750)
    (tmp_path / "link.py").symlink_to("a.py")
    assert invoke("fix", "link.py", "--unsafe").code == 0
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "a.py").read_text() == NARROW
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "link.py"]


def test_a_file_that_changed_meanwhile_is_not_overwritten(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(WIDE)
    mend = files.Mender.mend

    def slow(mender: files.Mender, text: str) -> object:
        (tmp_path / "a.py").write_text("import torch  # mine\n")
        return mend(mender, text)

    monkeypatch.setattr(files.Mender, "mend", slow)
    result = invoke("fix", "a.py", "--unsafe")
    assert result.code == 2
    assert "a.py: it changed while opscan was at work; nothing was written" in result.err
    assert (tmp_path / "a.py").read_text() == "import torch  # mine\n"


def test_a_file_that_cannot_be_written_is_told_and_left_whole(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace_file", full)
    (tmp_path / "a.py").write_text(WIDE)
    result = invoke("fix", "a.py", "--unsafe")
    assert (result.code, result.err) == (
        2,
        "opscan: error: a.py: it cannot be written: No space left on device\n",
    )
    assert "0 findings fixed in 0 files; 1 warning left" in result.out
    assert (tmp_path / "a.py").read_text() == WIDE


def test_what_is_ignored_is_left_alone(invoke: Invoke, tmp_path: Path) -> None:
    comment = WIDE.replace("# wide", "# opscan: ignore[OPS620] on the CPU")
    (tmp_path / "a.py").write_text(comment)
    (tmp_path / "b.py").write_text(WIDE)
    (tmp_path / "c.py").write_text(WIDE)
    (tmp_path / "opscan.toml").write_text(
        '[[ignore]]\nrule = "OPS620"\nfile = "b.py"\nreason = "on the CPU"\n'
    )
    result = invoke("fix", ".", "--unsafe")
    assert result.out == "c.py: OPS620 fixed\n1 finding fixed in 1 file; nothing is left.\n"
    read = [(tmp_path / f"{name}.py").read_text() for name in "abc"]
    assert read == [comment, WIDE, NARROW]


def test_only_what_had_a_correction_counts_as_fixed(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx.cuda()\ntorch.cuda.empty_cache()\n")
    before = invoke("--static", "a.py", "-f", "concise").out
    assert [line.split()[1] for line in before.splitlines()] == ["OPS601", "OPS611"]
    out = invoke("fix", "a.py", "--unsafe").out
    assert out == "a.py: OPS601 fixed\n1 finding fixed in 1 file; nothing is left.\n"


def test_the_corrected_script_runs(invoke: Invoke, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "fixtures" / "scripts" / "cuda_trainer.py"
    (tmp_path / "a.py").write_bytes(script.read_bytes())
    assert invoke("fix", "a.py", "--unsafe", "-q").out.endswith("; nothing is left.\n")
    trained = runpy.run_path("a.py")
    assert trained["weight"].dtype == torch.float32
    assert trained["loss"].isfinite()
