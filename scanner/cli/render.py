"""`opscan render REPORT`: a saved report in another format."""

from __future__ import annotations

from typing import Any

import click

from scanner.cli.view import read_report, show, view_options

__all__ = ["command"]


@click.command("render", short_help="Show a saved report in another format.")
@click.argument("report_file", metavar="REPORT")
@view_options
def command(report_file: str, **view: Any) -> int:
    """Show a report that was saved with -f json, without scanning again."""
    show(read_report(report_file), view)
    return 0
