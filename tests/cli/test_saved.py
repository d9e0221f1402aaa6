"""`opscan render` and `opscan judge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Child, Invoke
from tests.samples import call

OLD = ("--target", "torch==2.8.0")


@pytest.fixture
def saved(invoke: Invoke, child: Child, tmp_path: Path) -> str:
    """A report of a model with an op that 2.9 cures."""
    child.yields("broken.py", call("aten::kthvalue.values"), call("aten::mm"))
    assert invoke("broken.py", *OLD, "-o", "report.json", "-f", "json").code == 1
    return "report.json"


def test_render_shows_what_the_scan_would_have_shown(
    invoke: Invoke, child: Child, saved: str
) -> None:
    for name in ("text", "concise", "json"):
        scanned = invoke("broken.py", *OLD, "-f", name)
        rendered = invoke("render", saved, "-f", name)
        assert (rendered.code, rendered.out) == (0, scanned.out)


def test_judge_for_another_target(invoke: Invoke, saved: str) -> None:
    assert invoke("judge", saved).code == 1
    found = invoke("judge", saved, "--target", "torch==2.9.1", "-f", "json")
    assert found.code == 0
    assert json.loads(found.out)["targets"][0]["version"] == "2.9.1"
    assert json.loads(found.out)["models"][0]["findings"] == []


def test_judge_with_another_gate(invoke: Invoke, saved: str) -> None:
    assert invoke("judge", saved, "--fail-on", "never").code == 0


def test_judge_refuses_a_release_that_dispatches_other_ops(invoke: Invoke, saved: str) -> None:
    found = invoke("judge", saved, "--target", "torch==1.12.1")
    assert (found.code, found.out) == (2, "")
    assert "--target torch==1.12.1" in found.err


@pytest.mark.parametrize("command", ["render", "judge", "merge"])
@pytest.mark.parametrize("content", [None, "", "{}", '{"schema": "opscan.report/9"}'])
def test_bad_reports_are_2(
    invoke: Invoke, tmp_path: Path, command: str, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "bad.json").write_text(content)
    found = invoke(command, "bad.json")
    assert (found.code, found.out) == (2, "")
    assert "bad.json" in found.err
    assert "Traceback" not in found.err


def test_merge_of_shards(invoke: Invoke, child: Child, saved: str, tmp_path: Path) -> None:
    child.yields("fine.py", call("aten::mm"))
    (tmp_path / "fine.py").write_text((tmp_path / "broken.py").read_text())
    assert invoke("fine.py", *OLD, "-o", "fine.json", "-f", "json").code == 0
    found = invoke("merge", saved, "fine.json", "-f", "json", "--report", "sarif=all.sarif")
    assert found.code == 1
    assert [model["source"] for model in json.loads(found.out)["models"]] == [
        "broken.py",
        "fine.py",
    ]
    assert json.loads(Path("all.sarif").read_text())["version"] == "2.1.0"
    assert invoke("merge", saved, "fine.json", "--fail-on", "never").code == 0


def test_reports_are_read_from_standard_input(
    invoke: Invoke, saved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command, code in (("render", 0), ("judge", 1), ("merge", 1)):
        with Path(saved).open() as stdin, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", stdin)
            assert invoke(command, "-").code == code
    assert invoke("merge", "-", "-").code == 2
