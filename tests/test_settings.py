from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scanner.errors import UsageError
from scanner.settings import Settings, load_settings


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory two levels below the one that holds the settings."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.opscan]\ntarget = ["torch==2.8.0"]\nmode = "infer"\ntimeout = 5\nfail-on = "never"\n'
    )
    below = tmp_path / "package" / "models"
    below.mkdir(parents=True)
    return below


def load(directory: Path, environ: dict[str, str] | None = None, **flags: Any) -> Settings:
    return load_settings(flags, environ or {}, directory)


def test_defaults(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()
    assert Settings().fail_on == "error"


def test_flag_over_variable_over_file_over_default(project: Path) -> None:
    environ = {"OPSCAN_MODE": "train", "OPSCAN_TIMEOUT": "7.5", "OPSCAN_FAIL_ON": "warning"}
    found = load(project, environ, mode="auto", target=("torch==2.9.1",))
    assert (found.mode, found.timeout, found.fail_on) == ("auto", 7.5, "warning")
    assert found.target == ("torch==2.9.1",)
    assert found.allow_incomplete is False
    assert found.origins == {
        "mode": "the command line",
        "target": "the command line",
        "timeout": "OPSCAN_TIMEOUT",
        "fail_on": "OPSCAN_FAIL_ON",
    }


def test_the_nearest_file_with_settings_counts(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "inner"\n')
    found = load(project)
    assert (found.mode, found.timeout) == ("infer", 5.0)
    assert found.origins["mode"].endswith("pyproject.toml")
    (project / "pyproject.toml").write_text("[tool.opscan]\n")
    assert load(project) == Settings()


def test_a_target_may_be_one_string(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.opscan]\ntarget = "torch==2.8.0,macos=15"\n')
    assert load(tmp_path).target == ("torch==2.8.0,macos=15",)
    environ = {"OPSCAN_TARGET": "torch==2.8.0,macos=15; torch==2.9.1 ;"}
    assert load(tmp_path, environ).target == ("torch==2.8.0,macos=15", "torch==2.9.1")


@pytest.mark.parametrize("text", ["1", "true", "True"])
def test_switches_in_the_environment(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, {"OPSCAN_ALLOW_INCOMPLETE": text}).allow_incomplete is True


@pytest.mark.parametrize(
    ("content", "message", "remedy"),
    [
        ("[tool.opscan]\ntargets = []", "unknown setting 'targets'", "Did you mean target?"),
        ("[tool.opscan]\nfail_onn = 1", "unknown setting 'fail_onn'", "Did you mean fail-on?"),
        ("[tool.opscan]\nzebra = 1", "unknown setting 'zebra'", "Known settings: target, mode"),
        ("[tool.opscan]\nmode = 'trian'", "mode cannot be 'trian'", "Did you mean train?"),
        ("[tool.opscan]\ntimeout = 'long'", "timeout cannot be 'long'", "float"),
        ("[tool.opscan]\ntimeout = -1", "timeout must be more than 0", "pyproject.toml"),
        ("[tool.opscan]\ntimeout = nan", "timeout must be more than 0", "pyproject.toml"),
        ("[tool.opscan]\nallow-incomplete = 'yes'", "allow-incomplete cannot be 'yes'", "bool"),
        ("[tool.opscan]\ntarget = [1]", "target cannot be [1]", "str"),
        ("[tool.opscan", "cannot be read", "Mend the file"),
        ("[tool]\nopscan = 3", "is not a table", "[tool.opscan]"),
    ],
)
def test_mistakes_in_the_file_are_named(
    tmp_path: Path, content: str, message: str, remedy: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(UsageError) as raised:
        load(tmp_path)
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert "pyproject.toml" in str(raised.value)


def test_a_file_that_only_uses_other_tools_is_fine(tmp_path: Path) -> None:
    for content in ("tool = 3\n", "", "[tool.ruff]\nline-length = 3\n"):
        (tmp_path / "pyproject.toml").write_text(content)
        assert load(tmp_path) == Settings()


def test_a_mistake_in_a_variable_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="OPSCAN_ALLOW_INCOMPLETE"):
        load(tmp_path, {"OPSCAN_ALLOW_INCOMPLETE": "perhaps"})


def test_a_misspelt_variable_is_noted_and_not_refused(tmp_path: Path) -> None:
    found = load(tmp_path, {"OPSCAN_MOED": "train", "OPSCAN_MODE": "infer", "PATH": "/bin"})
    assert found.mode == "infer"
    assert found.notes == ("OPSCAN_MOED is not a setting of opscan. Did you mean OPSCAN_MODE?",)
