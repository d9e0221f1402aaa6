"""Documentation that must not drift from the program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scanner import __version__
from scanner.settings import NAMES, Settings, spelled

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("script", ["rule_docs.py", "sim_contradictions.py"])
def test_generated_pages_are_current(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / script, "--check"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_blocks_of_output_are_filled_in() -> None:
    commands = re.findall(r"<!-- run: (.*?) -->\n```text\n\$ (.*?)\n(.*?)```", README, re.DOTALL)
    assert len(commands) == README.count("<!-- run:") == README.count("<!-- end -->")
    for marked, shown, output in commands:
        assert marked == shown
        assert output.strip()


def test_exit_codes_are_the_same_in_help_and_readme() -> None:
    from scanner.cli.scan import command

    helped = dict(re.findall(r"^  (\d)  (\w+)", command.epilog or "", re.MULTILINE))
    written = dict(re.findall(r"^\| (\d) \| (\w+)", README, re.MULTILINE))
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    told = dict(re.findall(r"^\| (\d) \| (\w+)", page, re.MULTILINE))
    assert helped == written == told
    assert sorted(written) == ["0", "1", "2", "3"]


def test_the_page_of_settings_has_each_of_them() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == [spelled(name) for name in NAMES]


def test_settings_in_the_readme_exist() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    names = re.findall(r"^([\w-]+) =", block, re.MULTILINE)
    assert names
    assert {name.replace("-", "_") for name in names} <= set(Settings.__struct_fields__)


def test_the_version_stands_in_one_more_place_only() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{__version__}"' in project
