"""The report as one page for a browser: self-contained, no network, readable without JavaScript."""

from __future__ import annotations

from scanner.report.html.page import render

__all__ = ["render"]
