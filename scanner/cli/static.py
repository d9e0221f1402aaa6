"""`opscan --static PATH...`: source rules alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scanner.cli.streams import standard_input
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.records import Report
    from scanner.revision import Revision
    from scanner.settings import Settings
    from scanner.static import StaticPlan

__all__ = ["plan_static", "run_static"]

_NOT_STATIC = ("inputs", "device", "repro", "autocast", "steps", "batch", "stress", "timing")
"""Options of a scan that runs the model."""


def run_static(paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """Scan source files as the options say, and return the exit code."""
    from scanner.cli.accepted import accept, comments_in, known_before, load
    from scanner.cli.output import destinations
    from scanner.cli.view import show
    from scanner.static import static_scan

    _refuse(flags)
    view = {name: flags.pop(name) for name in ("output", "report", "quiet", "verbose", "color")}
    settings = load(flags)
    view["format"] = settings.format
    destinations(settings.format, view["output"], view["report"])
    plan = plan_static(paths, settings)
    known = known_before(
        settings.baseline, flags["diff_against"], os.environ, lambda files: _at(files, plan)
    )
    result = static_scan(plan)
    for note in (*settings.notes, *result.scanned.notices):
        sys.stderr.write(f"opscan: note: {note}\n")
    for traceback in result.scanned.tracebacks:
        sys.stderr.write(f"opscan: internal error:\n{traceback}")
    report = accept(result.report, settings, known, comments_in(result.scanned.marked))
    show(report, view)
    return report.exit_code


def _at(files: Revision, plan: StaticPlan) -> Report:
    """The same files as they are in a revision, as far as they are there."""
    from dataclasses import replace

    from scanner.static import static_scan

    moved = (files.moved(argument) for argument in plan.arguments)
    there = tuple(path for path in moved if path != "-" and (files.cwd / path).exists())
    return static_scan(replace(plan, arguments=there, cwd=files.cwd)).report


def _refuse(flags: dict[str, Any]) -> None:
    for name in _NOT_STATIC:
        if flags.get(name):
            raise UsageError(
                f"--{name} needs the model to be run, and --static never runs it",
                remedy="Leave one of the two out.",
            )


def plan_static(paths: tuple[str, ...], settings: Settings) -> StaticPlan:
    """A static scan as the options and settings say."""
    from scanner.cli.targets import choose_targets
    from scanner.host import this_host
    from scanner.judge.gate import Gate
    from scanner.source.scan import SourcePlan
    from scanner.static import StaticPlan

    host = this_host(os.environ)
    targets, notes = choose_targets(settings.target, host)
    return StaticPlan(
        arguments=paths,
        cwd=Path.cwd(),
        how=SourcePlan(
            targets=targets, cache=_cache, processes=_processors(), stdin=standard_input
        ),
        gate=Gate(fail_on=settings.fail_on, allow_incomplete=settings.allow_incomplete),
        environment={"python": host.python, "system": host.system, "machine": host.machine},
        notes=notes,
    )


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("opscan") / "source.sqlite"


def _processors() -> int:
    usable = getattr(os, "sched_getaffinity", None)  # not on a Mac
    return len(usable(0)) if usable else os.cpu_count() or 1
