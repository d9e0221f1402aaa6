"""`opscan db op|list|export|check`: what is known about ops, release by release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO

import click

from scanner.cli import coverage
from scanner.cli.completers import ops

if TYPE_CHECKING:
    from scanner.probe.store import Store

__all__ = ["command"]

_STATUSES = ["native", "composite", "fallback", "unsupported"]
_torch = click.option("--torch", "version", metavar="V", help="Release; default the newest known.")
_format = click.option("-f", "--format", type=click.Choice(["text", "json"]), default="text")


@click.group("db")
def command() -> None:
    """Look into the database of ops."""


command.add_command(coverage.command)


@command.command("op")
@click.argument("name", shell_complete=ops)
@click.option("--torch", "versions", metavar="V", multiple=True, help="Release. Repeatable.")
@click.option("--target", "targets", metavar="SPEC", multiple=True, help="Or as for a scan.")
@_format
def op(name: str, versions: tuple[str, ...], targets: tuple[str, ...], format: str) -> int:
    """Say what a release does with one op, as aten::kthvalue.values."""
    from scanner.cli.op_text import answer_text

    sys.stdout.write(answer_text(name, (*versions, *_named_by(targets)), format))
    return 0


@command.command("list")
@click.argument("pattern", default="")
@_torch
@click.option("--status", type=click.Choice(_STATUSES), help="Only ops with this status.")
@_format
def list_(pattern: str, version: str | None, status: str | None, format: str) -> int:
    """List ops of a release with their statuses; PATTERN is a part of the name."""
    from opdb import query
    from scanner.cli.op_text import json_lines, row

    facts = [fact for fact in query.list_ops(_release(version), status) if pattern in fact.op]
    sys.stdout.write(json_lines(facts) if format == "json" else "".join(map(row, facts)))
    return 0


@command.command("export")
@_torch
def export(version: str | None) -> int:
    """Print the ops that a release registers for MPS, one a line, sorted."""
    from opdb import query

    sys.stdout.write("".join(f"{name}\n" for name in query.export(_release(version))))
    return 0


@command.command("check")
def check() -> int:
    """Verify the data files: form, order, ranges and hashes."""
    from opdb import check as opdb_check

    sys.stdout.write(opdb_check.report())
    return 0


@command.command("import")
@click.argument("file", type=click.File("rb"))
def import_(file: BinaryIO) -> int:
    """Add measurements that another machine exported; FILE may be -."""
    from scanner.errors import DataError

    with _measurements() as store:
        found = store.merge(file)
    if found.refused:
        number, why = found.refused[0]
        raise DataError(
            f"{file.name}:{number}: not a measurement: {why}",
            remedy=f"{len(found.refused)} lines were left out; the others were imported. "
            "Export again with `opscan db measurements`.",
        )
    sys.stdout.write(
        f"{found.added} added, {found.replaced} replaced, {found.unchanged} known before\n"
    )
    return 0


@command.command("measurements")
def measurements() -> int:
    """Print what devices measured in earlier scans, one JSON line each, for `db import`."""
    with _measurements() as store:
        for line in store.export():
            sys.stdout.buffer.write(line)
    return 0


def _measurements() -> Store:
    from scanner.cli.devices import store_path
    from scanner.probe.store import open_store

    store, notice = open_store(store_path())
    if notice:
        sys.stderr.write(f"opscan: note: {notice}\n")
    return store


def _release(version: str | None) -> str:
    from opdb import query

    return query.resolve_release(version) if version else query.newest()


def _named_by(targets: tuple[str, ...]) -> list[str]:
    """The releases of `--target` options."""
    if not targets:
        return []
    from scanner.cli.targets import release_named
    from scanner.judge.target import parse_targets

    return [target.version for target in parse_targets(targets, release_named)]
