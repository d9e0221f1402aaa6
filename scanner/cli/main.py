"""Finds the command, runs it, and turns whatever happens into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from scanner import __version__
from scanner.cli.streams import prepare, reader_gone, unwritable
from scanner.errors import CaptureError, OpscanError

__all__ = ["COMMANDS", "run"]

COMMANDS = {
    "scan": "scanner.cli.scan",
    "baseline": "scanner.cli.baseline",
    "explain": "scanner.cli.explain",
    "fix": "scanner.cli.fix",
    "db": "scanner.cli.db",
    "judge": "scanner.cli.judge",
    "sim": "scanner.cli.sim",
    "sweep": "scanner.cli.sweep",
    "merge": "scanner.cli.merge",
    "render": "scanner.cli.render",
    "upgrade": "scanner.cli.upgrade",
    "doctor": "scanner.cli.doctor",
    "completion": "scanner.cli.completion",
}
"""Command → module; a module is imported when its command is used."""

_OWN_OPTIONS = frozenset({"--help", "-h", "--version", "-V"})


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="opscan %(version)s")
def _opscan() -> None:
    """Tell what an Apple GPU will do with your model, before you train it.

    `opscan MODEL...` is short for `opscan scan MODEL...`.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; messages go to stderr, results to stdout."""
    if asked := os.environ.get("_OPSCAN_COMPLETE"):
        from scanner.cli.completion import complete

        return complete(_opscan, _with_command, asked)
    prepare()
    if not arguments:
        sys.stderr.write(_opscan.get_help(click.Context(_opscan, info_name="opscan")) + "\n")
        return 2
    try:
        code = int(_opscan.main(_with_command(arguments), "opscan", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return 2
    except OpscanError as error:
        sys.stderr.write(f"opscan: error: {error}\n")
        return 3 if isinstance(error, CaptureError) else 2
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("opscan: interrupted; nothing is reported\n")
        return 2
    except BrokenPipeError:
        reader_gone()
        return 0
    except OSError as error:
        if (said := unwritable(error)) is None:
            return _bug()
        sys.stderr.write(f"opscan: error: {said}\n")
        return 2
    except Exception:
        return _bug()


def _with_command(arguments: Sequence[str]) -> list[str]:
    """Put `scan` in front of what names no command."""
    if arguments[0] in COMMANDS or arguments[0] in _OWN_OPTIONS:
        return list(arguments)
    return ["scan", *arguments]


def _bug() -> int:
    import traceback

    traceback.print_exc()
    sys.stderr.write(
        f"\nopscan {__version__} failed: this is a bug of opscan, not of your model.\n"
        "Please report it with the traceback above and the command that you ran.\n"
    )
    return 2
