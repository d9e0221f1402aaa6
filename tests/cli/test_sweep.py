"""`opscan sweep` without PyTorch's database: what it runs, keeps and says."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click.testing
import pytest

from scanner.cli.devices import Messages, store_path
from scanner.cli.sweep import command
from scanner.errors import UsageError
from scanner.probe import limits, sweep
from scanner.probe.limits import Launch
from scanner.probe.observer import Progress
from scanner.probe.store import open_store
from scanner.probe.sweep import Sample
from scanner.records import OpCall
from tests.probe.iso_fakes import RUNNER, fine


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.setattr(limits, "Launch", partial(Launch, runner=RUNNER))


def swept(
    monkeypatch: pytest.MonkeyPatch, calls: list[OpCall], *flags: str
) -> click.testing.Result:
    samples = [Sample(name="fine", call=call) for call in calls]
    monkeypatch.setattr(sweep, "op_infos", lambda *_: samples)
    runner = click.testing.CliRunner()
    return runner.invoke(command, ["--device", "cpu", *flags], standalone_mode=False)


def stored() -> list[float]:
    """Seconds that each kept measurement took."""
    store, _ = open_store(store_path())
    with store:
        return [float(line.split(b'"seconds":')[1].split(b",")[0]) for line in store.export()]


def test_what_is_measured_is_kept_and_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = swept(monkeypatch, fine(3))
    assert (first.exception, first.return_value) == (None, 0)
    assert "3 configurations of 1 entry on cpu: 3 native" in first.output
    kept = stored()
    assert len(kept) == 3
    swept(monkeypatch, fine(4))
    assert len(stored()) == 4
    assert set(kept) <= set(stored())


def test_fresh_runs_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    swept(monkeypatch, fine(3))
    before = stored()
    swept(monkeypatch, fine(3), "--fresh")
    assert len(stored()) == 3
    assert not set(before) & set(stored())


def test_other_options_are_other_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    swept(monkeypatch, fine(3))
    swept(monkeypatch, fine(3), "--no-gradients")
    assert len(stored()) == 6


def test_ctrl_c_gives_what_was_found_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(self: Messages, _progress: Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Messages, "progress", cut_short)
    found = swept(monkeypatch, fine(5))
    assert (found.exception, found.return_value) == (None, 3)
    assert "were not run" in found.output


def test_a_file_that_cannot_be_written_is_refused_before_the_sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in (tmp_path, tmp_path / "none" / "file"):
        found = swept(monkeypatch, fine(1), "-o", str(path))
        assert isinstance(found.exception, UsageError)
        assert "cannot write" in str(found.exception)
