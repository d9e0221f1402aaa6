"""`opscan db coverage`: what releases do with every operator of PyTorch's test database."""

from __future__ import annotations

import sys
from collections.abc import Collection

import click

from scanner.errors import UsageError

__all__ = ["command"]

_KNOWN = ("database", "simulated", "inferred", "issue")


@click.command("coverage")
@click.option("--torch", "version", metavar="V", help="Release; default the newest known.")
@click.option("--macos", metavar="M", help="As 15.5. Without it, issues of one macOS are left out.")
@click.option(
    "--evidence",
    default=",".join(_KNOWN),
    metavar="KINDS",
    help=f"What statuses may rest on; default {','.join(_KNOWN)}.",
)
@click.option("-f", "--format", type=click.Choice(["text", "json", "html"]), default="text")
def command(version: str | None, macos: str | None, evidence: str, format: str) -> int:
    """Print the support matrix: operator, dtype and direction with status and reason.

    html is one page about all releases, or about the one that --torch names.
    """
    sys.stdout.write(_document(version, macos, _kinds(evidence), format))
    return 0


def _document(version: str | None, macos: str | None, kinds: Collection[str], format: str) -> str:
    from opdb.coverage import coverage
    from scanner.cli.targets import release_named
    from scanner.judge.target import parse_target

    release = release_named(version or "")
    if macos is not None:
        macos = parse_target(f"torch,macos={macos}", lambda _: release).macos
    if format == "html":
        from opdb import query
        from scanner.report.coverage_html import coverage_html

        every = [release] if version else query.releases()
        return coverage_html({each: coverage(each, macos, kinds) for each in every}, macos)
    rows = list(coverage(release, macos, kinds))
    if format == "json":
        import msgspec

        document = {"torch": release, "macos": macos, "rows": rows}
        return msgspec.json.format(msgspec.json.encode(document).decode(), indent=2) + "\n"
    from scanner.report.coverage_text import coverage_text

    system = f", macOS {macos}" if macos else ""
    return coverage_text(rows, f"torch {release}{system}")


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(part.strip() for part in text.split(","))
    if wrong := [kind for kind in kinds if kind not in _KNOWN]:
        raise UsageError(
            f"there is no evidence {wrong[0]!r} in the support matrix",
            remedy=f"Choose among {', '.join(_KNOWN)}.",
        )
    return kinds
