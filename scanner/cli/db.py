"""`opscan db op|list|export|check`: what is known about ops, release by release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from opdb.facts import OpFact

__all__ = ["command"]

_STATUSES = ["native", "composite", "fallback", "unsupported"]
_torch = click.option("--torch", "version", metavar="V", help="Release; default the newest known.")
_format = click.option("-f", "--format", type=click.Choice(["text", "json"]), default="text")


@click.group("db")
def command() -> None:
    """Look into the database of ops."""


@command.command("op")
@click.argument("name")
@click.option("--torch", "versions", metavar="V", multiple=True, help="Release. Repeatable.")
@click.option("--target", "targets", metavar="SPEC", multiple=True, help="Or as for a scan.")
@_format
def op(name: str, versions: tuple[str, ...], targets: tuple[str, ...], format: str) -> int:
    """Say what a release does with one op, as aten::kthvalue.values."""
    from opdb import query
    from scanner.cli.op_text import details, unknown_op

    releases = _releases(versions, targets)
    facts = [query.lookup(name, release) for release in releases]
    if not any(fact.exists for fact in facts):
        exists = any(query.lookup(name, release).exists for release in query.releases())
        if not exists:
            raise unknown_op(name)
    if format == "json":
        sys.stdout.write(_json(facts))
    else:
        sys.stdout.write("".join(details(fact) for fact in facts))
    return 0


@command.command("list")
@click.argument("pattern", default="")
@_torch
@click.option("--status", type=click.Choice(_STATUSES), help="Only ops with this status.")
@_format
def list_(pattern: str, version: str | None, status: str | None, format: str) -> int:
    """List ops of a release with their statuses; PATTERN is a part of the name."""
    from opdb import query
    from scanner.cli.op_text import row

    release = _releases([version] if version else [], ())[0]
    facts = [fact for fact in query.list_ops(release, status) if pattern in fact.op]
    sys.stdout.write(_json_lines(facts) if format == "json" else "".join(map(row, facts)))
    return 0


@command.command("export")
@_torch
def export(version: str | None) -> int:
    """Print the ops that a release registers for MPS, one a line, sorted."""
    from opdb import query

    release = _releases([version] if version else [], ())[0]
    sys.stdout.write("".join(f"{name}\n" for name in query.export(release)))
    return 0


@command.command("check")
def check() -> int:
    """Verify the data files: form, order, ranges and hashes."""
    from opdb import check as opdb_check

    sys.stdout.write(opdb_check.report())
    return 0


def _releases(versions: tuple[str, ...] | list[str], targets: tuple[str, ...]) -> list[str]:
    from opdb import query

    named = [query.resolve_release(version) for version in versions]
    if targets:
        from scanner.cli.targets import release_named
        from scanner.judge.target import parse_targets

        named += [target.version for target in parse_targets(targets, release_named)]
    return list(dict.fromkeys(named)) or [query.newest()]


def _json(facts: list[OpFact]) -> str:
    """One object, or an array when several releases were asked for."""
    import msgspec

    encoded = msgspec.json.encode(facts[0] if len(facts) == 1 else facts)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def _json_lines(facts: list[OpFact]) -> str:
    import msgspec

    return "".join(f"{msgspec.json.encode(fact).decode()}\n" for fact in facts)
