from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

from scanner.cli.output import destinations, style_for, write
from scanner.errors import UsageError
from tests.cli.conftest import Child, Invoke


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


TERMINAL, PIPE, FILE = Stream(True), Stream(False), None


@pytest.mark.parametrize(
    ("stream", "option", "environ", "colored"),
    [
        (TERMINAL, "auto", {}, True),
        (PIPE, "auto", {}, False),
        (FILE, "auto", {}, False),
        (TERMINAL, "auto", {"NO_COLOR": "1"}, False),
        (TERMINAL, "auto", {"NO_COLOR": ""}, True),
        (TERMINAL, "auto", {"TERM": "dumb"}, False),
        (PIPE, "auto", {"FORCE_COLOR": "1"}, True),
        (FILE, "auto", {"FORCE_COLOR": "1"}, False),
        (PIPE, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (PIPE, "always", {"NO_COLOR": "1"}, True),
        (FILE, "always", {}, True),
        (TERMINAL, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(stream: Stream | None, option: str, environ: dict[str, str], colored: bool) -> None:
    style = style_for(stream, option, 0, environ)  # type: ignore[arg-type]
    assert style.color is colored


@pytest.mark.parametrize(
    ("columns", "width"),
    [("80", 80), ("200", 200), ("", 100), ("wide", 100), ("3", 100), ("²", 100)],
)
def test_width_of_a_pipe(columns: str, width: int) -> None:
    assert style_for(PIPE, "auto", 0, {"COLUMNS": columns}).width == width


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o640)
    write("new ×\n", path)
    assert path.read_text(encoding="utf-8") == "new ×\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write("new", link)
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")

    def full(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write("new", path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_destinations_in_order(tmp_path: Path) -> None:
    first, second = destinations("text", None, (f"json={tmp_path / 'a.json'}",))
    assert (first.format, first.path) == ("text", None)
    assert (second.format, second.path) == ("json", tmp_path / "a.json")


def test_without_its_package_a_format_is_refused_before_the_scan(
    invoke: Invoke, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scanner.report.find_spec", lambda _: None)
    for flags in (["-f", "html"], ["--report", "html=page.html"]):
        done = invoke("model.py", *flags)
        assert done.code == 2
        assert "the format html needs jinja2, which is not installed" in done.err
        assert "pip install 'opscan-metal[html]'" in done.err
    assert child.jobs == []
