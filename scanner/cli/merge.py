"""`opscan merge REPORT...`: several saved reports as one."""

from __future__ import annotations

import sys
from typing import Any

import click

from scanner.cli.accepted import settings_options
from scanner.cli.view import gate_options, read_report, show, view_options

__all__ = ["command"]


@click.command("merge", short_help="Make one report of several.")
@click.argument("report_files", metavar="REPORT...", nargs=-1, required=True)
@gate_options
@settings_options
@view_options
def command(report_files: tuple[str, ...], **flags: Any) -> int:
    """Unite reports saved with -f json: shards of a scan, or scans on several machines.

    What is ignored in a report stays so. The exit code is that of the whole, by today's gate.
    """
    from scanner.cli.accepted import load
    from scanner.errors import UsageError
    from scanner.judge.gate import Gate
    from scanner.judge.merge import Named, merge_reports

    if report_files.count("-") > 1:
        raise UsageError("standard input is named twice", remedy="Name - once.")
    settings = load(flags)
    gate = Gate(fail_on=settings.fail_on, allow_incomplete=settings.allow_incomplete)
    named = [Named(name, read_report(name)) for name in report_files]
    report, differences = merge_reports(named, gate)
    for text in differences:
        sys.stderr.write(f"opscan: note: {text}\n")
    show(report, flags | {"format": settings.format})
    return report.exit_code
