"""`opscan --static PATH...`: source rules alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.settings import Settings
    from scanner.static import StaticPlan

__all__ = ["run_static"]

_NOT_STATIC = ("inputs", "device", "repro", "autocast", "steps", "batch", "stress", "timing")
"""Options of a scan that runs the model."""


def run_static(paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """Scan source files as the options say, and return the exit code."""
    from scanner.cli.output import destinations
    from scanner.cli.view import show
    from scanner.settings import load_settings
    from scanner.static import static_scan

    _refuse(flags)
    view = {name: flags.pop(name) for name in ("output", "report", "quiet", "verbose", "color")}
    given = {name: flags[name] for name in ("target", "format", "fail_on", "allow_incomplete")}
    given = {name: value for name, value in given.items() if value not in (None, ())}
    settings = load_settings(given, os.environ, Path.cwd())
    view["format"] = settings.format
    destinations(settings.format, view["output"], view["report"])
    result = static_scan(_plan(paths, settings))
    for note in (*settings.notes, *result.scanned.notices):
        sys.stderr.write(f"opscan: note: {note}\n")
    for traceback in result.scanned.tracebacks:
        sys.stderr.write(f"opscan: internal error:\n{traceback}")
    show(result.report, view)
    return result.report.exit_code


def _refuse(flags: dict[str, Any]) -> None:
    for name in _NOT_STATIC:
        if flags.get(name):
            raise UsageError(
                f"--{name} needs the model to be run, and --static never runs it",
                remedy="Leave one of the two out.",
            )


def _plan(paths: tuple[str, ...], settings: Settings) -> StaticPlan:
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
            targets=targets, cache=_cache, processes=_processors(), stdin=sys.stdin.buffer.read
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
