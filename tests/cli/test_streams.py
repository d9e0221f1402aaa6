"""Standard streams in every state, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = 'import torch\nd = torch.device("cuda")  # ü ≠\n'


def shell(where: Path, program: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in which `opscan` is this tree's, on a file with one finding."""
    (where / "ü.py").write_text(SOURCE, encoding="utf-8")
    opscan = f"opscan() {{ '{sys.executable}' -m scanner \"$@\"; }}; set -o pipefail; "
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        ["bash", "-c", opscan + program],
        cwd=where,
        env=kept | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(where / "cache")} | environ,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252:strict", "utf-16"])
def test_what_an_encoding_lacks_is_escaped_for_people(tmp_path: Path, encoding: str) -> None:
    done = shell(tmp_path, "opscan --static .", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (1, b"")
    text = done.stdout.decode(encoding.partition(":")[0])
    assert "# " in text
    assert ("≠" if encoding == "utf-16" else r"\u2260") in text


def test_reports_for_programs_are_utf_8_whatever_the_terminal(tmp_path: Path) -> None:
    done = shell(tmp_path, "opscan --static . -f json", PYTHONIOENCODING="ascii")
    (finding,) = json.loads(done.stdout.decode())["source"]["findings"]
    assert finding["location"]["file"] == "ü.py"


def test_a_closed_output_changes_no_exit_code(tmp_path: Path) -> None:
    done = shell(tmp_path, "opscan --static . >&- 2>&-")
    assert done.returncode == 1


def test_a_closed_input_is_said(tmp_path: Path) -> None:
    for command in ("--static -", "render -", "fix -"):
        done = shell(tmp_path, f"opscan {command} <&-")
        assert done.returncode == 2
        assert done.stderr.startswith(b"opscan: error: standard input is closed\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
@pytest.mark.parametrize("command", ["--static .", "explain OPS601", "--static . -f json"])
def test_a_full_disk_is_no_bug(tmp_path: Path, command: str) -> None:
    done = shell(tmp_path, f"opscan {command} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == b"opscan: error: cannot write: No space left on device\n"


def test_the_exit_code_stays_when_the_reader_has_gone(tmp_path: Path) -> None:
    done = shell(tmp_path, "opscan --static . --report json=late.json | true")
    assert (done.returncode, done.stderr) == (1, b"")
    assert (tmp_path / "late.json").exists()


def test_no_report_is_written_over_source(tmp_path: Path) -> None:
    done = shell(tmp_path, "opscan --static ü.py -o ü.py")
    assert done.returncode == 2
    assert b"it is Python source" in done.stderr
    assert (tmp_path / "ü.py").read_text(encoding="utf-8") == SOURCE
