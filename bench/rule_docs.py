"""Writes docs/rules/ from the registry of rules: `python bench/rule_docs.py --write|--check`."""

from __future__ import annotations

import sys
from pathlib import Path

from scanner.registry import RULES
from scanner.report.rule_page import index_page, rule_page

FOLDER = Path(__file__).parents[1] / "docs" / "rules"


def pages() -> dict[str, str]:
    """File name → content."""
    return {
        "index.md": index_page(RULES.values()),
        **{f"{rule.id}.md": rule_page(rule) for rule in RULES.values()},
    }


def stale() -> list[str]:
    """Names of files that are missing, differ, or belong to no rule."""
    wanted = pages()
    there = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    return sorted(name for name in wanted.keys() | there if wanted.get(name) != there.get(name))


def main(arguments: list[str]) -> int:
    """Write the pages, or say which are not current."""
    if arguments == ["--write"]:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for path in FOLDER.glob("*.md"):
            path.unlink()
        for name, text in pages().items():
            (FOLDER / name).write_text(text)
        return 0
    for name in stale():
        print(f"docs/rules/{name} is not current; run `python bench/rule_docs.py --write`")
    return 1 if stale() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
