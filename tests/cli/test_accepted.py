"""Ignores, baselines and what is new, from the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CODE, Child, Invoke
from tests.samples import at, call

MISSING = call("aten::_linalg_eigh", locations=(at(5, file="broken.py"),))
SECOND = call("aten::_linalg_eigh", locations=(at(6, file="broken.py"),))
OLD = ("--target", "torch==2.9.1")


@pytest.fixture
def broken(child: Child, tmp_path: Path) -> Path:
    """broken.py with an op at line 5 that 2.9 lacks."""
    child.yields("broken.py", MISSING)
    return tmp_path / "broken.py"


def findings(out: str) -> list[dict[str, Any]]:
    document = json.loads(out)
    found = [each for model in document["models"] for each in model["findings"]]
    return found + (document["suppression"] or {"findings": []})["findings"]


def test_a_comment_in_the_file_is_enough(invoke: Invoke, broken: Path) -> None:
    assert invoke("broken.py", *OLD).code == 1
    broken.write_text(CODE.replace("    pass", "    pass  # opscan: ignore[OPS101] once an epoch"))
    found = invoke("broken.py", *OLD, "-f", "json")
    assert found.code == 0
    (finding,) = findings(found.out)
    assert (finding["suppressed"], finding["suppressed_by"]) == ("once an epoch", "line")
    text = invoke("broken.py", *OLD).out
    assert text.startswith(
        "no errors, no warnings in 1 model and 1 file on torch 2.9.1; 1 ignored\n"
    )
    assert "once an epoch" not in text
    assert "-v lists ignored and known findings too" in text
    assert "OPS101 ignored: once an epoch" in invoke("broken.py", *OLD, "-v").out
    assert invoke("broken.py", *OLD, "-f", "concise").out == ""


def test_a_comment_without_reason_is_a_warning(invoke: Invoke, broken: Path) -> None:
    broken.write_text(CODE.replace("    pass", "    pass  # opscan: ignore[OPS101]"))
    found = invoke("broken.py", *OLD)
    assert found.code == 1
    assert "warning OPS804 broken.py:5: " in found.out


def test_a_table_of_the_settings_is_enough(invoke: Invoke, broken: Path, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    table = '[[tool.opscan.ignore]]\nrule = "OPS101"\nfile = "broken.py"\nreason = "soon gone"\n'
    settings.write_text(table)
    assert invoke("broken.py", *OLD).code == 0
    assert invoke("broken.py", *OLD, "--isolated").code == 1
    settings.write_text(f"{table}expires = 2001-01-01\n")
    found = invoke("broken.py", *OLD)
    assert found.code == 1
    assert "OPS802 pyproject.toml:1: " in found.out


def test_a_saved_report_keeps_its_comments(invoke: Invoke, broken: Path) -> None:
    broken.write_text(CODE.replace("    pass", "    pass  # opscan: ignore[OPS101] once"))
    assert invoke("broken.py", *OLD, "-f", "json", "-o", "report.json").code == 0
    broken.unlink()
    assert invoke("judge", "report.json").code == 0
    assert "1 ignored" in invoke("render", "report.json").out


def test_write_scan_and_prune(invoke: Invoke, child: Child, broken: Path, tmp_path: Path) -> None:
    assert invoke("broken.py", *OLD, "-f", "json", "-o", "report.json").code == 1
    written = invoke("baseline", "write", "report.json", "--reason", "known since 2026")
    assert (written.code, written.out) == (0, "")
    assert written.err == "opscan: opscan-baseline.json: 1 finding\n"
    text = (tmp_path / "opscan-baseline.json").read_text()
    assert invoke("baseline", "write", "broken.py", *OLD, "-o", "-").out == text.replace(
        ', "reason": "known since 2026"', ""
    )
    known = ("--baseline", "opscan-baseline.json")
    found = invoke("broken.py", *OLD, *known)
    assert (found.code, "; 1 known, 0 new\n" in found.out) == (0, True)
    assert invoke("judge", "report.json", *known).code == 0
    shown = invoke("render", "report.json", *known, "-f", "json")
    assert (shown.code, json.loads(shown.out)["exit_code"]) == (0, 0)
    child.yields("broken.py", MISSING, SECOND)
    found = invoke("broken.py", *OLD, *known)
    assert (found.code, "; 1 known, 1 new\n" in found.out) == (1, True)
    child.yields("broken.py", call("aten::mm"))
    assert (
        "note OPS805 opscan-baseline.json:1: the baseline holds OPS101"
        in invoke("broken.py", *OLD, *known).out
    )
    assert invoke("baseline", "prune", "broken.py", *OLD).code == 0
    assert (tmp_path / "opscan-baseline.json").read_text() == (
        '{\n  "schema": "opscan.baseline/1",\n  "findings": []\n}\n'
    )


def test_a_baseline_may_be_a_setting(invoke: Invoke, broken: Path, tmp_path: Path) -> None:
    (tmp_path / "opscan.toml").write_text('baseline = "known.json"\n')
    assert invoke("broken.py", *OLD).code == 2
    assert invoke("baseline", "write", "broken.py", *OLD).err.startswith("opscan: ")
    assert (tmp_path / "known.json").is_file()
    assert invoke("broken.py", *OLD).code == 0


def test_a_baseline_of_an_incomplete_scan_is_3(invoke: Invoke, child: Child) -> None:
    child.yields("clean.py", call("torchvision::nms"))
    found = invoke("baseline", "write", "clean.py", *OLD)
    assert (found.code, "incomplete" in found.err) == (3, True)
    assert invoke("baseline", "write", "clean.py", *OLD, "--allow-incomplete").code == 0


@pytest.mark.parametrize("command", ["broken.py", "judge", "render"])
@pytest.mark.parametrize("content", [None, "", '{"schema": "opscan.baseline/9"}'])
def test_bad_baselines_are_2(
    invoke: Invoke, broken: Path, tmp_path: Path, command: str, content: str | None
) -> None:
    invoke("broken.py", *OLD, "-f", "json", "-o", "report.json")
    if content is not None:
        (tmp_path / "bad.json").write_text(content)
    arguments = ("broken.py", *OLD) if command == "broken.py" else (command, "report.json")
    found = invoke(*arguments, "--baseline", "bad.json")
    assert (found.code, found.out) == (2, "")
    assert "bad.json" in found.err
    assert "Traceback" not in found.err


def test_only_what_is_new_beside_a_report(invoke: Invoke, child: Child, broken: Path) -> None:
    invoke("broken.py", *OLD, "-f", "json", "-o", "before.json")
    child.yields("broken.py", MISSING, SECOND)
    found = invoke("broken.py", *OLD, "--diff-against", "before.json", "-f", "json")
    assert found.code == 1
    assert sorted(each["baseline_state"] for each in findings(found.out)) == ["new", "unchanged"]
    child.yields("broken.py", call("aten::mm"))
    found = invoke("broken.py", *OLD, "--diff-against", "before.json")
    assert (found.code, "OPS805" in found.out) == (0, False)


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(broken: Path, tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "trunk")
    git(tmp_path, "add", "broken.py", "clean.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_only_what_is_new_beside_a_revision(invoke: Invoke, child: Child, repository: Path) -> None:
    (repository / "broken.py").write_text(CODE + "# changed\n")
    before = sorted(repository.rglob("*"))
    found = invoke("broken.py", *OLD, "--diff-against", "trunk", "-f", "json")
    assert found.code == 0
    assert findings(found.out)[0]["suppressed"].startswith("known from trunk (")
    there, here = child.jobs
    assert here.cwd == str(repository)
    assert there.cwd != here.cwd
    assert not Path(there.cwd).exists()
    assert sorted(repository.rglob("*")) == before
    assert (repository / "broken.py").read_text().endswith("# changed\n")


def test_a_file_that_was_not_there_is_all_new(
    invoke: Invoke, child: Child, repository: Path
) -> None:
    child.yields("other.py", MISSING)
    found = invoke("other.py", *OLD, "--diff-against", "HEAD", "-f", "json")
    assert found.code == 1
    assert [each["baseline_state"] for each in findings(found.out)] == ["new"]


@pytest.mark.parametrize("ref", ["gone", "--all", ""])
def test_unknown_revisions_are_2(invoke: Invoke, repository: Path, ref: str) -> None:
    found = invoke("broken.py", *OLD, f"--diff-against={ref}")
    assert (found.code, found.out) == (2, "")
    assert "neither a file nor a git revision" in found.err


def test_outside_a_repository_is_2(
    invoke: Invoke, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    found = invoke("broken.py", *OLD, "--diff-against", "main")
    assert (found.code, "is not in a git repository" in found.err) == (2, True)


def test_static_scans_have_all_of_it(invoke: Invoke, repository: Path) -> None:
    path = repository / "train.py"
    path.write_text('import torch\n\ndevice = torch.device("cuda")\n')
    assert invoke("--static", "train.py", "--fail-on", "warning").code == 1
    fresh = invoke("--static", "train.py", "--diff-against", "HEAD", "--fail-on", "warning")
    assert fresh.code == 1
    git(repository, "add", "train.py")
    git(repository, "commit", "-q", "-m", "second")
    path.write_text(f"# moved down\n{path.read_text()}")
    found = invoke("--static", "train.py", "--diff-against", "HEAD", "--fail-on", "warning")
    assert found.code == 0
    path.write_text('import torch\n\nd = torch.device("cuda")  # opscan: ignore[OPS601] a demo\n')
    assert invoke("--static", ".", "--fail-on", "warning").code == 0
    path.write_text("import torch\n\nd = 3  # opscan: ignore[OPS601] a demo\n")
    stale = invoke("--static", ".", "-f", "json")
    assert [each["rule"] for each in findings(stale.out)] == ["OPS801"]
