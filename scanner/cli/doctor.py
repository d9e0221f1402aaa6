"""`opscan doctor --settings`: what is set, and where."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scanner.cli.accepted import settings_options
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.settings import Settings

__all__ = ["command"]

_DEFAULT = "default"


@click.command("doctor", short_help="Show the settings in force, and where each comes from.")
@click.option("--settings", "only_settings", is_flag=True, help="Settings and their origins.")
@click.option("-f", "--format", "format_name", type=click.Choice(["text", "json"]), default="text")
@settings_options
def command(only_settings: bool, format_name: str, config: Path | None, isolated: bool) -> int:
    """Show each setting with its value and origin: a variable, a settings file, or the default.

    Flags of a scan win over all of them. In this version --settings is the only check.
    """
    from scanner.cli.accepted import load

    if not only_settings:
        raise UsageError(
            "this version of `opscan doctor` shows settings only", remedy="Add --settings."
        )
    settings = load({"config": config, "isolated": isolated})
    for note in settings.notes:
        sys.stderr.write(f"opscan: note: {note}\n")
    sys.stdout.write(_json(settings) if format_name == "json" else _text(settings))
    return 0


def _rows(settings: Settings) -> list[tuple[str, Any, str]]:
    """Name as it is written, value as JSON has it, origin."""
    import msgspec

    from scanner.settings import NAMES, spelled

    values: dict[str, Any] = msgspec.to_builtins(settings)
    return [(spelled(name), values[name], settings.origins.get(name, _DEFAULT)) for name in NAMES]


def _json(settings: Settings) -> str:
    found = {name: {"value": value, "origin": origin} for name, value, origin in _rows(settings)}
    return json.dumps({"schema": "opscan.settings/1", "settings": found}, indent=2) + "\n"


def _text(settings: Settings) -> str:
    rows = [(name, _shown(value), origin) for name, value, origin in _rows(settings)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = (f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}" for name, value, origin in rows)
    return "".join(f"{line}\n" for line in lines)


def _shown(value: Any) -> str:
    match value:
        case None | [] | "":
            return "-"
        case bool():
            return "true" if value else "false"
        case [dict(), *_]:
            return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
        case [*parts]:
            return "; ".join(map(str, parts))
        case _:
            return str(value)
