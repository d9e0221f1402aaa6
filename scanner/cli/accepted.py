"""What the user has accepted, gathered from settings, files and comments, and applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scanner.errors import DataError, LocateError

if TYPE_CHECKING:
    from scanner.records import LineIgnore, Report
    from scanner.revision import Revision
    from scanner.settings import Settings
    from scanner.suppress.interface import Baseline

__all__ = [
    "accept",
    "baseline_options",
    "comments_of",
    "known_before",
    "read_baseline",
    "settings_options",
]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
ScanAt = Callable[["Revision"], "Report"]

_BASELINE = (
    click.option("--baseline", metavar="FILE", help="Known findings, which do not count."),
    click.option(
        "--diff-against",
        metavar="REPORT|REF",
        help="Only what is new counts, beside a saved report or a git revision.",
    ),
)
_SETTINGS = (
    click.option("--config", metavar="FILE", help="Settings file, instead of the nearest one."),
    click.option("--isolated", is_flag=True, help="Read no settings file."),
)


def baseline_options(function: FunctionT) -> FunctionT:
    """Add what was known before."""
    for option in reversed(_BASELINE):
        function = option(function)
    return function


def settings_options(function: FunctionT) -> FunctionT:
    """Add where settings are read from."""
    for option in reversed(_SETTINGS):
        function = option(function)
    return function


def read_baseline(path: str) -> Baseline:
    """A baseline file; raises `DataError`."""
    from scanner.suppress.baseline_file import parse_baseline
    from scanner.suppress.interface import Baseline

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read the baseline {path}: {error.strerror}",
            remedy="Write it with `opscan baseline write`.",
        ) from None
    return Baseline(name=Path(path).name, entries=parse_baseline(text, path))


def known_before(
    baseline: str | None, diff_against: str | None, environ: dict[str, str], scan_at: ScanAt | None
) -> tuple[Baseline, ...]:
    """The baseline file, and what a report or revision shows.

    `scan_at` scans the same as the command, in the files of a revision; None where the command
    cannot. Raises before anything long is done when a file cannot be used.
    """
    found = (read_baseline(baseline),) if baseline else ()
    if diff_against is None:
        return found
    if scan_at is None or Path(diff_against).is_file():
        return (*found, _of_report(diff_against))
    return (*found, _of_revision(diff_against, environ, scan_at))


def comments_of(report: Report, more: Iterable[str] = ()) -> tuple[LineIgnore, ...]:
    """Ignores in the files that a report speaks of, as they are now."""
    from scanner.suppress.comments import line_ignores

    return line_ignores(report, _text, more)


def accept(
    report: Report,
    settings: Settings,
    baselines: tuple[Baseline, ...],
    lines: tuple[LineIgnore, ...],
) -> Report:
    """The report under everything that was accepted."""
    from datetime import date

    from scanner.judge.gate import Gate
    from scanner.suppress.interface import Policy

    policy = Policy(
        today=date.today(),
        gate=Gate(fail_on=settings.fail_on, allow_incomplete=settings.allow_incomplete),
        ignores=settings.ignore,
        lines=lines,
        baselines=baselines,
        prefix=settings.prefix,
    )
    if policy.is_empty and report.suppression is None:
        return report
    from scanner.registry import RULES
    from scanner.suppress.apply import suppress

    return suppress(report, policy, tuple(RULES))


def _of_report(path: str) -> Baseline:
    from scanner.cli.view import read_report

    return _known(path, read_report(path))


def _of_revision(ref: str, environ: dict[str, str], scan_at: ScanAt) -> Baseline:
    from scanner.revision import files_at
    from scanner.suppress.interface import Baseline

    with files_at(ref, Path.cwd(), environ) as revision:
        if not revision.cwd.is_dir():
            return Baseline(name=revision.name, report_fixed=False)
        try:
            return _known(revision.name, scan_at(revision))
        except LocateError:  # nothing of it was there: all is new
            return Baseline(name=revision.name, report_fixed=False)


def _known(name: str, report: Report) -> Baseline:
    from scanner.suppress.baseline import baseline_of
    from scanner.suppress.interface import Baseline

    return Baseline(name=name, entries=baseline_of(report), report_fixed=False)


def _text(file: str) -> str | None:
    """A file of the user's; None for one that is not there or is no text."""
    from scanner.suppress.comments import MARK

    try:
        content = (Path.cwd() / file).read_bytes()
    except OSError:
        return None
    return content.decode("utf-8", "replace") if MARK.encode() in content else None
