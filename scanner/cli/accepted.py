"""What the user has accepted, gathered from settings, files and comments, and applied."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
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
    "comments_in",
    "comments_of",
    "comments_saved",
    "known_before",
    "load",
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
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings file, instead of the nearest one.",
    ),
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
    here = Path.cwd()
    file = here / path
    name = file.relative_to(here) if file.is_relative_to(here) else file
    return Baseline(name=name.as_posix(), entries=parse_baseline(text, path))


def known_before(
    baseline: str | None,
    diff_against: str | None,
    environ: Mapping[str, str],
    scan_at: ScanAt | None,
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


def comments_of(report: Report) -> tuple[LineIgnore, ...]:
    """Ignores in the files that a report speaks of, as they are now."""
    from scanner.suppress.comments import files_of, line_ignores

    texts = ((file, _text(file)) for file in sorted(files_of(report)))
    return line_ignores((file, text) for file, text in texts if text)


def comments_in(files: Iterable[tuple[str, bytes]]) -> tuple[LineIgnore, ...]:
    """Ignores in files that were read."""
    if not files:
        return ()
    from scanner.suppress.comments import line_ignores

    return line_ignores((name, content.decode("utf-8", "replace")) for name, content in files)


def comments_saved(report: Report) -> tuple[LineIgnore, ...]:
    """Ignores that were read when a report was written; its files may have changed since."""
    return report.suppression.lines if report.suppression else ()


def load(flags: Mapping[str, Any]) -> Settings:
    """Settings of a command; flags that are no settings are passed over."""
    from scanner.settings import NAMES, load_settings

    given = {name: flags[name] for name in NAMES if flags.get(name) not in (None, ())}
    config, isolated = flags.get("config"), bool(flags.get("isolated"))
    return load_settings(given, os.environ, Path.cwd(), config=config, isolated=isolated)


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


def _of_revision(ref: str, environ: Mapping[str, str], scan_at: ScanAt) -> Baseline:
    from scanner.revision import files_at
    from scanner.suppress.interface import Baseline

    with files_at(ref, Path.cwd(), environ) as revision:
        if not revision.cwd.is_dir():
            return Baseline(name=revision.name, report_fixed=False)
        try:
            report = scan_at(revision)
        except LocateError:  # nothing of it was there: all is new
            return Baseline(name=revision.name, report_fixed=False)
    for model in report.models:
        if model.capture is None:
            sys.stderr.write(
                f"opscan: note: {model.name} was not captured at {revision.name}: "
                "all that is found in it counts as new\n"
            )
    return _known(revision.name, report)


def _known(name: str, report: Report) -> Baseline:
    from scanner.suppress.baseline import baseline_of
    from scanner.suppress.interface import Baseline

    return Baseline(name=name, entries=baseline_of(report), report_fixed=False)


def _text(file: str) -> str | None:
    """A file of the user's; None for one that is not there or is no text."""
    try:
        content = (Path.cwd() / file).read_bytes()
    except OSError:
        return None
    return content.decode("utf-8", "replace")
