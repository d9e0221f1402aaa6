"""Output formats: each a pure function of the canonical report, one file a format."""

from __future__ import annotations

from importlib import import_module

from scanner.records import Report
from scanner.report.interface import FORMATS, Style

__all__ = ["FORMATS", "Style", "render"]


def render(report: Report, name: str, style: Style) -> str:
    """The report in the format `name`, one of `FORMATS`, ending in a newline.

    Formats are imported when used: text needs rich, json does not.
    """
    text: str = import_module(FORMATS[name]).render(report, style)
    return text
