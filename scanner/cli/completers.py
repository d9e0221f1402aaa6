"""What options and arguments can be, for completion. Imported with every command: keep it light."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["files", "formats", "ops", "reports", "subjects", "targets"]


def files(_context: click.Context, _parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Whatever the shell finds."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(text, type="file")]


def formats(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
    """Names of output formats."""
    from scanner.report.interface import FORMATS

    return _matching(FORMATS, text)


def reports(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
    """`html=`, before the file's name."""
    from scanner.report.interface import FORMATS

    return _matching((f"{name}=" for name in FORMATS), text)


def targets(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
    """`torch==2.9.1` for every known release, the newest first."""
    from opdb import query

    return _matching((f"torch=={release}" for release in reversed(query.releases())), text)


def ops(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
    """Operators of the newest known release."""
    from opdb import query

    return _matching(query.names(query.newest()), text)


def subjects(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    """What `explain` explains: rules by id and name, else ops."""
    from scanner.registry import RULES

    known = [*RULES, *(rule.name for rule in RULES.values())]
    return _matching(known, text) or _matching(known, text.upper()) or ops(context, parameter, text)


def _matching(known: Iterable[str], text: str) -> list[str]:
    return [each for each in known if each.startswith(text)]
