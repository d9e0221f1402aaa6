"""`opscan baseline write|prune`: the file of known findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scanner.cli.accepted import settings_options
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.records import Report
    from scanner.settings import Settings

__all__ = ["command"]

_DEFAULT = "Default: the setting, else opscan-baseline.json."
_SOURCES = (
    click.argument("sources", metavar="REPORT|MODEL...", nargs=-1, required=True),
    click.option("-t", "--target", multiple=True, metavar="SPEC", help="For MODELs, as in a scan."),
    click.option("--mode", type=click.Choice(["auto", "train", "infer"]), help="For MODELs."),
    click.option("--inputs", metavar="SPEC", help="For MODELs."),
    click.option("--device", metavar="NAME", help="For MODELs."),
    click.option("--timeout", type=float, metavar="SECONDS", help="For MODELs."),
    click.option("--static", is_flag=True, help="Only read MODELs; run nothing."),
    click.option("--allow-incomplete", is_flag=True, default=None, help="Exit 0 instead of 3."),
    settings_options,
)


def _of_sources(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_SOURCES):
        function = option(function)
    return function


@click.group("baseline", short_help="Write the file of known findings, or prune it.")
def command() -> None:
    """Known findings: they stay in the report, and do not count for the exit code.

    REPORT is what `opscan MODEL -f json -o FILE` wrote. For a MODEL a scan is run first.
    """


@command.command("write")
@_of_sources
@click.option(
    "-o", "--output", metavar="FILE", help="Default: the setting, else opscan-baseline.json."
)
@click.option("--reason", metavar="TEXT", help="Why they are accepted, written to each.")
def write(sources: tuple[str, ...], output: str | None, reason: str | None, **flags: Any) -> int:
    """Write every finding that no ignore hides.

    Reasons in a file that is written over are kept.
    """
    from scanner.suppress.baseline import baseline_of_all, with_reasons

    if reason is not None and not reason.strip():
        raise UsageError("--reason is empty", remedy="Say why, or leave it out.")
    settings, file = _settings(flags, output)
    before = _entries(file) if Path(file).is_file() else ()
    reports = _reports(sources, settings, flags)
    entries = with_reasons(baseline_of_all(reports, reason), before)
    _write(entries, file)
    return _exit_code(reports, settings)


@command.command("prune")
@_of_sources
@click.option("--baseline", metavar="FILE", help=_DEFAULT)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of over the baseline.")
@click.option("--all", "everything", is_flag=True, help="Drop all that the reports do not show.")
def prune(sources: tuple[str, ...], output: str | None, everything: bool, **flags: Any) -> int:
    """Drop what is fixed.

    What the reports do not look at stays: other models, and findings of a device where none was
    run. --all drops that too.
    """
    from scanner.suppress.baseline import pruned

    settings, file = _settings(flags, flags["baseline"])
    before = _entries(file)
    reports = _reports(sources, settings, flags)
    _write(pruned(before, *reports, everything=everything), output or file)
    return _exit_code(reports, settings)


def _settings(flags: dict[str, Any], file: str | None) -> tuple[Settings, str]:
    from scanner.cli.accepted import load
    from scanner.suppress.baseline_file import DEFAULT

    settings = load({**flags, "baseline": None})
    return settings, file or settings.baseline or DEFAULT


def _entries(file: str) -> Any:
    from scanner.cli.accepted import read_baseline

    return read_baseline(file).entries


def _reports(sources: Sequence[str], settings: Settings, flags: dict[str, Any]) -> list[Report]:
    """Saved reports, and one of a scan of everything else."""
    from scanner.cli.view import read_report

    saved = [each for each in sources if each.endswith(".json")]
    models = tuple(each for each in sources if each not in saved)
    reports = [read_report(each) for each in saved]
    if models:
        reports.append((_static if flags["static"] else _scan)(models, settings))
    if any(report.exit_code == 2 for report in reports):
        raise UsageError(
            "what was named could not all be judged",
            remedy="`opscan scan` says why; nothing was written.",
        )
    return reports


def _scan(models: tuple[str, ...], settings: Settings) -> Report:
    from opdb import query
    from scanner.cli.accepted import accept, comments_of
    from scanner.cli.devices import Messages
    from scanner.cli.messages import interruptible, progress
    from scanner.cli.scan import plan_of
    from scanner.pipeline import scan

    how = dict.fromkeys(("stress", "timing", "fresh"), False)
    more = dict.fromkeys(("repro", "autocast", "steps", "batch"), None)
    plan = plan_of(models, settings, how, {**more, "ulp": "nearest"})
    with interruptible(), progress(quiet=False) as on_capture:
        report = scan(plan, query, on_capture, Messages(quiet=False)).report
    return accept(report, settings, (), comments_of(report))


def _static(paths: tuple[str, ...], settings: Settings) -> Report:
    from scanner.cli.accepted import accept, comments_in
    from scanner.cli.static import plan_static
    from scanner.static import static_scan

    result = static_scan(plan_static(paths, settings))
    return accept(result.report, settings, (), comments_in(result.scanned.marked))


def _write(entries: Sequence[Any], file: str) -> None:
    from scanner.cli.output import file_to_write, write
    from scanner.suppress.baseline_file import render_baseline

    write(render_baseline(entries), file_to_write(file))
    number = sum(entry.count for entry in entries)
    sys.stderr.write(f"opscan: {file}: {number:,} finding{'' if number == 1 else 's'}\n")


def _exit_code(reports: Sequence[Report], settings: Settings) -> int:
    """3 when something was not judged: it is not known whether it belongs in the baseline."""
    if settings.allow_incomplete or all(report.summary.complete for report in reports):
        return 0
    sys.stderr.write("opscan: incomplete: what was not judged is not in the baseline\n")
    return 3
