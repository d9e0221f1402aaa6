"""A sweep of a few entries by a prepared release."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opdb.build.execution.fold import fold
from opdb.build.execution.observation import read


@pytest.mark.sim
def test_a_sweep_of_a_prepared_release_shows_what_its_code_does(tmp_path: Path) -> None:
    entries = ["addr", "erfc", "linalg.eigh"]
    command = ["2.15.0", "26.2", "float32,int64", "2", str(tmp_path), *entries]
    subprocess.run([sys.executable, "-m", "opdb.build.execution.worker", *command], check=True)
    header, rows = read(tmp_path / "float32.jsonl")
    assert (header.release, header.dtype) == ("2.15.0", "float32")
    floats = {fact[0]: fact for fact in fold(rows) if fact[2] == "any"}
    assert floats["erfc"][3] == "native-shader"
    assert floats["addr"][3] == "native-graph"
    assert floats["_linalg_eigh"][3] == "fallback"
    assert {row.value for row in rows if row.op == "aten::erfc" and row.layout == "sampled"} == {
        "agrees"
    }
    integers = {fact[:3]: fact for fact in fold(read(tmp_path / "int64.jsonl")[1])}
    assert integers["addr", "int64", "any"][3] == "raises"


@pytest.mark.sim
def test_a_release_that_is_not_prepared_is_named(tmp_path: Path) -> None:
    command = ["1.0.0", "26.2", "float32", "1", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "opdb.build.execution.worker", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "torch 1.0.0 is not prepared" in done.stderr
