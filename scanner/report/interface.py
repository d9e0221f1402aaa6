"""What an output format is: `render(report, style) -> str` in a module of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from scanner.records import Report

__all__ = ["EXTRAS", "FORMATS", "Renderer", "Style"]

FORMATS = {
    "text": "scanner.report.text",
    "concise": "scanner.report.concise",
    "json": "scanner.report.json_",
    "jsonl": "scanner.report.jsonl",
    "sarif": "scanner.report.sarif",
    "junit": "scanner.report.junit",
    "github": "scanner.report.github",
    "markdown": "scanner.report.markdown",
    "html": "scanner.report.html",
}
"""Format name → module."""

EXTRAS = {"html": ("jinja2", "html")}
"""Format name → the package that it needs, and the extra of opscan that brings it."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """How the reader looks at it; formats for machines ignore all of it."""

    width: int = 100
    """Columns."""
    color: bool = False
    verbosity: int = 0
    """-1 quiet, 0 normal, 1 verbose."""


class Renderer(Protocol):
    """A module in `FORMATS`."""

    def render(self, report: Report, style: Style) -> str:
        """The whole output, ending in a newline; the same for the same arguments."""
