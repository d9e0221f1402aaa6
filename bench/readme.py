"""Keeps the command output in README.md real: `python bench/readme.py --write|--check`.

A block looks like this; everything between the fences is what the command prints:

    <!-- run: opscan db check -->
    ```text
    $ opscan db check
    ...
    ```
    <!-- end -->
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
WIDTH = 100

BLOCK = re.compile(
    r"(?<=<!-- run: )(?P<command>.*?) -->\n```text\n.*?```\n(?=<!-- end -->)", re.DOTALL
)


def output_of(command: str) -> str:
    """What the command prints; exit codes 0, 1 and 3 are results too."""
    program, *arguments = shlex.split(command)
    if program != "opscan":
        raise SystemExit(f"README runs opscan only, not {program}")
    done = subprocess.run(
        [sys.executable, "-m", "scanner", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode == 2:
        raise SystemExit(f"{command}\n{done.stderr}")
    return done.stdout


def current(text: str) -> str:
    """The README with every block as it would be printed now."""

    def run(block: re.Match[str]) -> str:
        command = block["command"]
        return f"{command} -->\n```text\n$ {command}\n{output_of(command)}```\n"

    return BLOCK.sub(run, text)


def main(arguments: list[str]) -> int:
    """Write the blocks, or show how they differ."""
    old = README.read_text(encoding="utf-8")
    new = current(old)
    if arguments == ["--write"]:
        README.write_text(new, encoding="utf-8")
        return 0
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), "README.md", "now", lineterm="")
    print("\n".join(diff) or "README.md is current")
    return 0 if old == new else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
