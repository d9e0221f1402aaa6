"""`opscan upgrade MODEL`: the model against every torch release."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from scanner.cli.accepted import settings_options
from scanner.cli.messages import interruptible, progress
from scanner.errors import UsageError

__all__ = ["command"]


@click.command("upgrade", short_help="Tell what other torch releases would cure or break.")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "-t",
    "--target",
    metavar="SPEC",
    help="Where you are: torch==2.5.1,macos=15.5. Default: this Mac, else the oldest release.",
)
@click.option("--mode", type=click.Choice(["auto", "train", "infer"]), help="Step to capture.")
@click.option("--inputs", metavar="SPEC", help='As "x=1x3x224x224:float32".')
@click.option("--timeout", type=float, metavar="SECONDS", help="As for a scan.")
@click.option("-f", "--format", type=click.Choice(["text", "json"]), default="text")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@settings_options
def command(
    models: tuple[str, ...], target: str | None, format: str, quiet: bool, **flags: Any
) -> int:
    """Judge the MODELs for every known release: what each cures and breaks, which is enough.

    Everything is read from the database; only the capture takes time.
    """
    import msgspec

    from opdb import query
    from scanner.judge.upgrade import compare
    from scanner.pipeline import scan
    from scanner.report.upgrade_text import upgrade_text

    base, targets = _targets(target)
    plan = _plan(models, targets, flags)
    with interruptible(), progress(quiet=quiet) as on_capture:
        report = scan(plan, query, on_capture).report
    judged = [compare(model, targets, base) for model in report.models if model.ops]
    if format == "json":
        document = {"schema": "opscan.upgrade/1", "models": judged}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document), indent=2))
        sys.stdout.write("\n")
    else:
        sys.stdout.write(upgrade_text(judged))
    return _not_captured([model.name for model in report.models if not model.ops])


def _not_captured(names: list[str]) -> int:
    for name in names:
        sys.stderr.write(f"opscan: {name} was not captured; `opscan scan` says why\n")
    return 3 if names else 0


def _targets(text: str | None) -> tuple[Any, tuple[Any, ...]]:
    """Where the user is, and the same machine with every known release, oldest first."""
    import msgspec

    from opdb import query
    from scanner.cli.targets import choose_targets
    from scanner.host import this_host

    host = this_host(os.environ)
    known = query.releases()
    spec = text or ("" if host.is_apple_silicon and host.torch else f"torch=={known[0]}")
    (base, *_), _ = choose_targets([spec] if spec else [], host)
    if base.version not in known:
        raise UsageError(
            f"torch {base.version} is not known, so it cannot be compared with others",
            remedy=f"Name a release from {known[0]} to {known[-1]}: --target torch==2.9.1.",
        )
    targets = tuple(msgspec.structs.replace(base, version=release) for release in known)
    return base, targets


def _plan(models: tuple[str, ...], targets: tuple[Any, ...], flags: dict[str, Any]) -> Any:
    from scanner.capture.client import Launch
    from scanner.cli.accepted import load
    from scanner.pipeline import Plan

    settings = load(flags)
    return Plan(
        arguments=models,
        cwd=Path.cwd(),
        targets=targets,
        mode=settings.mode,
        inputs=settings.inputs,
        entry=settings.entry,
        launch=Launch(timeout_s=settings.timeout, environ=dict(os.environ)),
    )
