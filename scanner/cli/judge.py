"""`opscan judge REPORT`: judge the ops of a saved report again, without running the model."""

from __future__ import annotations

import os
from typing import Any

import click

from scanner.cli.accepted import baseline_options, settings_options
from scanner.cli.view import gate_options, read_report, show, view_options

__all__ = ["command"]


@click.command("judge", short_help="Judge a saved report again, without running the model.")
@click.argument("report_file", metavar="REPORT")
@click.option(
    "-t", "--target", multiple=True, metavar="SPEC", help="Instead of the report's. Repeatable."
)
@gate_options
@baseline_options
@settings_options
@view_options
def command(report_file: str, target: tuple[str, ...], **flags: Any) -> int:
    """Judge a report saved with -f json again: newer facts, other targets, another gate."""
    from opdb import query
    from scanner.cli.accepted import accept, comments_saved, known_before, load
    from scanner.cli.targets import release_named
    from scanner.judge.again import judge_again
    from scanner.judge.gate import Gate
    from scanner.judge.target import parse_targets

    settings = load(flags)
    known = known_before(settings.baseline, flags["diff_against"], os.environ, None)
    gate = Gate(fail_on=settings.fail_on, allow_incomplete=settings.allow_incomplete)
    targets = parse_targets(target, release_named)
    saved = read_report(report_file)
    judged = judge_again(saved, targets, gate, query)
    report = accept(judged, settings, known, comments_saved(saved))
    show(report, flags | {"format": settings.format})
    return report.exit_code
