"""`opscan judge REPORT`: judge the ops of a saved report again, without running the model."""

from __future__ import annotations

from typing import Any

import click

from scanner.cli.view import gate_options, read_report, show, view_options

__all__ = ["command"]


@click.command("judge", short_help="Judge a saved report again, without running the model.")
@click.argument("report_file", metavar="REPORT")
@click.option(
    "-t", "--target", multiple=True, metavar="SPEC", help="Instead of the report's. Repeatable."
)
@gate_options
@view_options
def command(
    report_file: str,
    target: tuple[str, ...],
    fail_on: str | None,
    allow_incomplete: bool | None,
    **view: Any,
) -> int:
    """Judge a report saved with -f json again: newer facts, other targets, another gate."""
    from opdb import query
    from scanner.cli.targets import release_named
    from scanner.judge.again import judge_again
    from scanner.judge.gate import Gate
    from scanner.judge.target import parse_targets

    gate = Gate(fail_on=fail_on or "error", allow_incomplete=bool(allow_incomplete))  # type: ignore[arg-type]
    targets = parse_targets(target, release_named)
    report = judge_again(read_report(report_file), targets, gate, query)
    show(report, view)
    return report.exit_code
