import subprocess
from types import SimpleNamespace

import pytest

from opdb.build import download
from scanner.errors import DataError

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""SHA-256 of nothing."""

NAME = "torch-2.9.1-cp312-none-macosx_11_0_arm64.whl"


@pytest.fixture
def pip(monkeypatch):
    """Plays pip: records the command, writes one empty wheel, or fails."""
    played = SimpleNamespace(command=None, env=None, name=NAME, fails="")

    def run(command, *, env, **_):
        played.command, played.env = command, env
        if played.fails:
            return subprocess.CompletedProcess(command, 1, "", played.fails)
        folder = command[command.index("-d") + 1]
        download.Path(folder, played.name).write_bytes(b"")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(download.subprocess, "run", run)
    return played


def test_a_recorded_wheel_is_not_downloaded_again(tmp_path, pip):
    (tmp_path / NAME).write_bytes(b"")
    assert download.wheel("2.9.1", tmp_path, (NAME, EMPTY)) == (tmp_path / NAME, EMPTY)
    assert pip.command is None


def test_a_damaged_wheel_is_downloaded_again(tmp_path, pip):
    (tmp_path / NAME).write_bytes(b"half")
    assert download.wheel("2.9.1", tmp_path, (NAME, EMPTY))[1] == EMPTY
    assert pip.command is not None


def test_pip_is_asked_for_the_mac_wheel_without_local_configuration(tmp_path, pip):
    download.wheel("2.9.1", tmp_path / "new", None)
    command = " ".join(pip.command[1:])
    assert command.startswith("-m pip download --no-deps --only-binary=:all:")
    assert "--platform macosx_14_0_arm64 --platform macosx_11_0_arm64" in command
    assert command.endswith("torch==2.9.1")
    assert pip.env["PIP_CONSTRAINT"] == ""
    assert pip.env["PIP_CONFIG_FILE"] == "/dev/null"


@pytest.mark.parametrize(
    ("release", "recorded", "python"),
    [
        ("1.12.1", None, "3.10"),
        ("2.1.2", None, "3.10"),
        ("2.2.0", None, "3.12"),
        ("2.10.0", None, "3.12"),
        ("2.9.1", ("torch-2.9.1-cp311-none-macosx_11_0_arm64.whl", EMPTY), "3.11"),
        ("2.10.0", ("torch-2.10.0-2-cp313-none-macosx_11_0_arm64.whl", EMPTY), "3.13"),
    ],
)
def test_the_python_version_is_the_recorded_one_or_one_that_every_release_has(
    tmp_path, pip, release, recorded, python
):
    pip.name = recorded[0] if recorded else f"torch-{release}-x.whl"
    download.wheel(release, tmp_path, recorded)
    assert pip.command[pip.command.index("--python-version") + 1] == python


def test_another_wheel_than_the_recorded_one_is_an_error(tmp_path, pip):
    with pytest.raises(DataError, match="the index serves") as caught:
        download.wheel("2.9.1", tmp_path, (NAME, "f" * 64))
    assert EMPTY in caught.value.message
    assert "releases.tsv" in caught.value.remedy


def test_an_index_that_cannot_be_reached_is_named_with_the_reason(tmp_path, pip):
    pip.fails = "WARNING: retrying\nERROR: No matching distribution found for torch==2.9.1"
    with pytest.raises(DataError, match=r"torch 2\.9\.1: pip could not .* No matching") as caught:
        download.wheel("2.9.1", tmp_path, None)
    assert "connection" in caught.value.remedy
