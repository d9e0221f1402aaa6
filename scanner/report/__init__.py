"""Output formats: each a pure function of the canonical report, one file a format."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from scanner.errors import UsageError
from scanner.records import Report
from scanner.report.encodable import encodable
from scanner.report.interface import EXTRAS, FORMATS, Style

__all__ = ["FORMATS", "Style", "render", "require"]


def render(report: Report, name: str, style: Style) -> str:
    """The report in the format `name`, one of `FORMATS`, ending in a newline.

    Formats are imported when used: text needs rich, json does not. Raises `UsageError` as `require`
    does.
    """
    require(name)
    text: str = import_module(FORMATS[name]).render(encodable(report), style)
    return text


def require(name: str) -> None:
    """Raise `UsageError` when a format needs a package that is not installed."""
    package, extra = EXTRAS.get(name, (None, None))
    if package is not None and find_spec(package) is None:
        raise UsageError(
            f"the format {name} needs {package}, which is not installed",
            remedy=f"pip install 'opscan-metal[{extra}]'",
        )
