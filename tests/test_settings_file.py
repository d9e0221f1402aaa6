"""Where settings are read from, and the tables of ignores in them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.records import Location
from scanner.settings import Settings, load_settings
from scanner.suppress.interface import Ignore


def load(directory: Path, config: Path | None = None, *, isolated: bool = False) -> Settings:
    return load_settings({}, {}, directory, config=config, isolated=isolated)


def test_opscan_toml_has_its_settings_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "opscan.toml").write_text('mode = "infer"\n')
    found = load(tmp_path)
    assert (found.mode, found.origins["mode"]) == ("infer", str(tmp_path / "opscan.toml"))


def test_opscan_toml_wins_in_its_directory_and_the_nearest_in_all(tmp_path: Path) -> None:
    (tmp_path / "opscan.toml").write_text('mode = "infer"\n')
    (tmp_path / "pyproject.toml").write_text('[tool.opscan]\nmode = "train"\ndevice = "cpu"\n')
    assert (load(tmp_path).mode, load(tmp_path).device) == ("infer", "auto")
    below = tmp_path / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text('[tool.opscan]\nmode = "train"\n')
    assert load(below).mode == "train"


def test_a_file_may_be_named_or_none_read(tmp_path: Path) -> None:
    (tmp_path / "opscan.toml").write_text('mode = "infer"\n')
    (tmp_path / "ci.toml").write_text('mode = "train"\n')
    assert load(tmp_path, tmp_path / "ci.toml").mode == "train"
    assert load(tmp_path, isolated=True) == Settings()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.toml", None, "there is no settings file"),
        ("ci.toml", "x = ", "cannot be read"),
        ("ci.toml", "x = 1", "unknown setting 'x'"),
        ("ci.toml", "mode = 1", "mode cannot be 1"),
        ("pyproject.toml", "[tool.ruff]", "has no [tool.opscan]"),
    ],
)
def test_a_named_file_must_be_one(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError) as raised:
        load(tmp_path, tmp_path / name)
    assert message in raised.value.message
    assert name in str(raised.value)


def test_ignores_know_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.opscan]\nmode = "infer"\n\n'
        '[[tool.opscan.ignore]]\nrule = "ops101"\nreason = "a"\nexpires = 2027-03-01\n'
        '[[tool.opscan.ignore]]\nop = "aten::mm"\nreason = "b"\nissue = "https://example.org/1"\n'
    )
    below = tmp_path / "nets" / "gp"
    below.mkdir(parents=True)
    first, second = load(below).ignore
    place = Location(file="../../pyproject.toml", line=4)
    assert first == Ignore(rule="OPS101", reason="a", expires=date(2027, 3, 1), place=place)
    assert second.place == Location(file="../../pyproject.toml", line=8)
    assert (load(below).prefix, load(tmp_path).prefix) == ("nets/gp/", "")


def test_ignores_may_be_written_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "opscan.toml").write_text('ignore = [{ rule = "OPS101", reason = "a" }]\n')
    (found,) = load(tmp_path).ignore
    assert found.place == Location(file="opscan.toml", line=1)


def test_a_baseline_is_relative_to_its_settings(tmp_path: Path) -> None:
    (tmp_path / "opscan.toml").write_text('baseline = "known.json"\n')
    below = tmp_path / "below"
    below.mkdir()
    assert load(below).baseline == str(tmp_path / "known.json")
    assert load_settings({"baseline": "x.json"}, {}, below).baseline == "x.json"
    assert load_settings({}, {"OPSCAN_BASELINE": "y.json"}, below).baseline == "y.json"


@pytest.mark.parametrize(
    ("table", "message", "remedy"),
    [
        ('rule = "OPS101"', "ignore 1 of", "Say why"),
        ('rule = "OPS101"\nreason = " "', "has no reason", "Say why"),
        ('reason = "all of it"', "does not say what it is about", "rule, op, dtype"),
        ('reason = "a"\nrules = "OPS101"', "unknown key 'rules'", "Did you mean rule?"),
        ('reason = "a"\nplace = "OPS101"', "unknown key 'place'", "Known keys: reason, rule"),
        ('reason = "a"\nrule = 101', "$.rule", "It takes text in quotes"),
        ('reason = "a"\nrule = "OPS101"\nexpires = "soon"', "$.expires", "2027-03-01"),
        ('reason = "a"\nrule = "OPS101"\nexpires = 2027', "$.expires", "2027-03-01"),
        ('reason = 3\nrule = "OPS101"', "$.reason", "It takes text in quotes"),
    ],
)
def test_mistakes_in_ignores_are_named(
    tmp_path: Path, table: str, message: str, remedy: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[[tool.opscan.ignore]]\n{table}\n")
    with pytest.raises(UsageError) as raised:
        load(tmp_path)
    assert message in raised.value.message
    assert "pyproject.toml" in raised.value.message
    assert remedy in raised.value.remedy


@pytest.mark.parametrize("value", ['"OPS101"', '["OPS101"]', "{ rule = 'OPS101' }"])
def test_ignores_are_tables(tmp_path: Path, value: str) -> None:
    (tmp_path / "opscan.toml").write_text(f"ignore = {value}\n")
    with pytest.raises(UsageError, match="is not a list of tables"):
        load(tmp_path)


def test_ignores_come_from_files_only(tmp_path: Path) -> None:
    found = load_settings({}, {"OPSCAN_IGNORE": "OPS101"}, tmp_path)
    assert found.ignore == ()
    assert "OPSCAN_IGNORE is not a setting" in found.notes[0]
