"""Options that every command which shows a report has."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scanner.cli.completers import formats, reports
from scanner.cli.streams import standard_input
from scanner.errors import DataError

if TYPE_CHECKING:
    from scanner.records import Report

__all__ = ["gate_options", "read_report", "show", "view_options"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_VIEW = (
    click.option(
        "-f",
        "--format",
        metavar="FORMAT",
        shell_complete=formats,
        help="text (default), concise, json, jsonl, sarif, junit, github, markdown or html.",
    ),
    click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output."),
    click.option(
        "--report",
        multiple=True,
        shell_complete=reports,
        metavar="FORMAT=FILE",
        help="One more. Repeatable.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Only the summary line."),
    click.option("-v", "--verbose", is_flag=True, help="Every configuration and more messages."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
    ),
)
_GATE = (
    click.option(
        "--fail-on", type=click.Choice(["error", "warning", "never"]), help="Exit 1 from this on."
    ),
    click.option("--allow-incomplete", is_flag=True, default=None, help="Exit 0 instead of 3."),
)


def view_options(function: FunctionT) -> FunctionT:
    """Add how and where the report is shown."""
    return _all(_VIEW, function)


def gate_options(function: FunctionT) -> FunctionT:
    """Add what makes the exit code 1 or 3."""
    return _all(_GATE, function)


def show(report: Report, view: dict[str, Any]) -> None:
    """Write the report as the options say."""
    from scanner.cli.output import destinations, emit

    emit(
        report,
        destinations(view["format"] or "text", view["output"], view["report"]),
        color=view["color"],
        verbosity=view["verbose"] - view["quiet"],
        environ=os.environ,
    )


def read_report(path: str) -> Report:
    """The saved report in a file, `-` for standard input; raises `DataError`."""
    from scanner.report.json_ import parse

    if path == "-":
        return parse(standard_input(), "standard input")
    try:
        return parse(Path(path).read_bytes(), path)
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}", remedy="Name a file written with -f json."
        ) from None


def _all(options: tuple[Callable[[FunctionT], FunctionT], ...], function: FunctionT) -> FunctionT:
    for option in reversed(options):
        function = option(function)
    return function
