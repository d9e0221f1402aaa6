"""`opscan render REPORT`: a saved report in another format."""

from __future__ import annotations

import os
from typing import Any

import click

from scanner.cli.accepted import baseline_options, settings_options
from scanner.cli.view import read_report, show, view_options

__all__ = ["command"]


@click.command("render", short_help="Show a saved report in another format.")
@click.argument("report_file", metavar="REPORT")
@baseline_options
@settings_options
@view_options
def command(report_file: str, **flags: Any) -> int:
    """Show a report that was saved with -f json, without scanning again.

    What was ignored stays so, unless --baseline or --diff-against is given: then everything is
    weighed anew, with the ignores of today's settings.
    """
    from scanner.cli.accepted import accept, comments_saved, known_before, load

    report = read_report(report_file)
    if flags["baseline"] or flags["diff_against"]:
        known = known_before(flags["baseline"], flags["diff_against"], os.environ, None)
        report = accept(report, load(flags), known, comments_saved(report))
    show(report, flags)
    return 0
