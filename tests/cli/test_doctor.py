from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.settings import NAMES, spelled
from tests.cli.conftest import Invoke


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "pyproject.toml"
    path.write_text(
        '[tool.opscan]\ntimeout = 9\ntarget = ["torch==2.9.1", "torch==2.8.0"]\n'
        '[[tool.opscan.ignore]]\nrule = "OPS101"\nreason = "soon gone"\n'
    )
    monkeypatch.setenv("OPSCAN_FAIL_ON", "warning")
    return path


def test_each_setting_and_where_it_comes_from(invoke: Invoke, settings: Path) -> None:
    found = invoke("doctor", "--settings")
    assert (found.code, found.err) == (0, "")
    rows = {line.split("  ")[0]: line for line in found.out.splitlines()}
    assert list(rows) == [spelled(name) for name in NAMES]
    assert rows["fail-on"].endswith("OPSCAN_FAIL_ON")
    assert rows["timeout"].endswith(f"[tool.opscan] of {settings}")
    assert "torch==2.9.1; torch==2.8.0" in rows["target"]
    assert "1 entry" in rows["ignore"]
    assert rows["mode"].split() == ["mode", "auto", "default"]


def test_as_json(invoke: Invoke, settings: Path) -> None:
    document = json.loads(invoke("doctor", "--settings", "-f", "json").out)
    assert document["schema"] == "opscan.settings/1"
    assert document["settings"]["fail-on"] == {"value": "warning", "origin": "OPSCAN_FAIL_ON"}
    assert document["settings"]["inputs"] == {"value": None, "origin": "default"}
    assert document["settings"]["ignore"]["value"][0]["reason"] == "soon gone"


def test_the_file_may_be_left_out_or_named(invoke: Invoke, settings: Path) -> None:
    assert "pyproject.toml" not in invoke("doctor", "--settings", "--isolated").out
    settings.with_name("ci.toml").write_text("timeout = 7\n")
    assert "ci.toml" in invoke("doctor", "--settings", "--config", "ci.toml").out


def test_mistakes_are_2(invoke: Invoke, settings: Path) -> None:
    settings.write_text("[tool.opscan]\nfail_onn = 1\n")
    found = invoke("doctor", "--settings")
    assert (found.code, found.out) == (2, "")
    assert "Did you mean fail-on?" in found.err


def test_without_an_option_it_says_what_it_can(invoke: Invoke) -> None:
    found = invoke("doctor")
    assert (found.code, "--settings" in found.err) == (2, True)
