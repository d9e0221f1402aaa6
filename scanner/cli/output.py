"""Where reports go: standard output, or files that are replaced whole or not at all."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from scanner.atomic import replace_file
from scanner.cli.streams import to_stdout
from scanner.errors import UsageError
from scanner.records import Report
from scanner.report import FORMATS, Style, render, require

__all__ = ["Color", "Destination", "destinations", "emit", "file_to_write", "style_for", "write"]

Color = Literal["auto", "always", "never"]

_FOR_PEOPLE = frozenset({"text", "concise"})
_WIDTH = 100
"""Columns where nobody says how wide the reader's window is."""


@dataclass(frozen=True, kw_only=True)
class Destination:
    """One rendering of the report and where it is written."""

    format: str
    path: Path | None
    """None for standard output."""


def destinations(
    format_name: str, output: str | None, reports: tuple[str, ...]
) -> tuple[Destination, ...]:
    """Read `-f`, `-o` and `--report FMT=FILE`; raises `UsageError` before anything is scanned."""
    first = Destination(format=format_name, path=file_to_write(output) if output else None)
    found = (first, *(_report(text) for text in reports))
    for each in found:
        require(each.format)
    paths = [each.path for each in found if each.path]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"two reports go to {path}", remedy="Give each a file of its own.")
    return found


def emit(
    report: Report,
    outputs: Sequence[Destination],
    *,
    color: Color,
    verbosity: int,
    environ: Mapping[str, str],
) -> None:
    """Render the report once for each destination and write it there."""
    for output in outputs:
        stream = None if output.path else sys.stdout
        style = style_for(stream, color, verbosity, environ)
        exact = output.format not in _FOR_PEOPLE
        write(render(report, output.format, style), output.path, exact=exact)


def write(text: str, path: Path | None, *, exact: bool = True) -> None:
    """Write UTF-8; a file is replaced in one step, so that no reader ever sees half of it.

    What is not `exact` may be escaped where standard output has another encoding.
    """
    if path is None:
        to_stdout(text, exact=exact)
        return
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", remedy="") from None


def style_for(
    stream: TextIO | None, color: Color, verbosity: int, environ: Mapping[str, str]
) -> Style:
    """How a stream (None: a file) is read.

    `--color` wins over NO_COLOR, that over FORCE_COLOR, and that over what a terminal suggests.
    Files are colored only by `--color always`.
    """
    terminal = stream is not None and stream.isatty()
    if color != "auto":
        colored = color == "always"
    elif environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        colored = False
    else:
        colored = terminal or (stream is not None and bool(environ.get("FORCE_COLOR")))
    columns = environ.get("COLUMNS", "")
    if re.fullmatch("[0-9]{2,4}", columns) and int(columns) >= 40:
        width = int(columns)
    else:
        width = _terminal_width() if terminal else _WIDTH
    return Style(width=width, color=colored, verbosity=verbosity)


def _terminal_width() -> int:
    from shutil import get_terminal_size  # loads three libraries of compression

    return get_terminal_size((_WIDTH, 24)).columns


def _report(text: str) -> Destination:
    name, equals, file = text.partition("=")
    if name not in FORMATS or not equals or file in {"", "-"}:
        raise UsageError(
            f"--report {text}: not FORMAT=FILE", remedy=f"Formats: {', '.join(FORMATS)}."
        )
    return Destination(format=name, path=file_to_write(file))


def file_to_write(text: str) -> Path | None:
    """The file that a flag names, None for `-`; raises `UsageError` for one that cannot be."""
    if text == "-":
        return None
    path = Path(text)
    if path.is_dir():
        raise UsageError(f"cannot write {text}: it is a directory", remedy="Name a file.")
    if path.suffix == ".py" and path.exists():
        raise UsageError(
            f"cannot write {text}: it is Python source", remedy="Name a file for the report."
        )
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {text}: no such directory", remedy="Create it first.")
    return path
