"""Finds and reads the settings file: `[tool.opscan]` of pyproject.toml, or opscan.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from scanner.errors import UsageError
from scanner.records import Location
from scanner.suppress.interface import Ignore

__all__ = ["SettingsFile", "read_ignores", "settings_file", "suggest", "what_it_takes"]

_OWN = "opscan.toml"
_SHARED = "pyproject.toml"
_SELECTORS = ("rule", "op", "dtype", "file", "model", "target")
_IGNORE_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(?:tool\.opscan\.)?ignore[ \t]*\]\]", re.MULTILINE)
_WORDS = {
    "str": "text in quotes (str)",
    "date": "a date as 2027-03-01",
    "float": "a number (float)",
    "int": "a whole number (int)",
    "bool": "true or false (bool)",
    "array": "a list",
}


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """A file's settings, as written; keys are not checked yet."""

    path: Path | None = None
    """None when there is no file."""
    table: dict[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def origin(self) -> str:
        """How messages name it."""
        if self.path is not None and self.path.name != _SHARED:
            return str(self.path)
        return f"[tool.opscan] of {self.path}"

    @property
    def section(self) -> str:
        """Where in the file the settings stand: a phrase for messages, empty for all of it."""
        return " in [tool.opscan]" if self.path is not None and self.path.name == _SHARED else ""


def settings_file(directory: Path, config: Path | None, *, isolated: bool) -> SettingsFile:
    """The file named by `--config`, else the nearest upward from `directory` that has settings.

    In one directory opscan.toml is preferred. Raises `UsageError` for a file that cannot be used.
    """
    if isolated:
        return SettingsFile()
    if config is not None:
        return _named(config)
    for folder in (directory, *directory.parents):
        for name in (_OWN, _SHARED):
            path = folder / name
            if path.is_file() and (found := _read(path)) is not None:
                return found
    return SettingsFile()


def read_ignores(value: Any, file: SettingsFile, shown: str) -> tuple[Ignore, ...]:
    """The `ignore` tables. Each needs a reason and something that it is about."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise UsageError(
            f"ignore in {file.origin} is not a list of tables",
            remedy="Write each as [[tool.opscan.ignore]]."
            if file.section
            else "Write each as [[ignore]].",
        )
    lines = _header_lines(file.text, len(value))
    return tuple(
        _ignore(table, f"ignore {number} of {file.origin}", Location(file=shown, line=line))
        for number, (table, line) in enumerate(zip(value, lines, strict=True), 1)
    )


def suggest(word: str, known: Iterable[str]) -> str:
    """`Did you mean …? `, or nothing."""
    near = get_close_matches(word, list(known), n=1)
    return f"Did you mean {near[0]}? " if near else ""


def _named(config: Path) -> SettingsFile:
    if not config.is_file():
        raise UsageError(f"there is no settings file {config}", remedy="Check --config.")
    found = _read(config)
    if found is None:
        raise UsageError(f"{config} has no [tool.opscan]", remedy="Add it, or name another file.")
    return found


def _read(path: Path) -> SettingsFile | None:
    """None for a pyproject.toml without [tool.opscan], so that the search goes on upward."""
    try:
        text = path.read_text(encoding="utf-8")
        document = msgspec.toml.decode(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="Mend the file.") from None
    if path.name != _SHARED:
        return SettingsFile(path=path, table=document, text=text)
    tool = document.get("tool")
    table = tool.get("opscan") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise UsageError(f"tool.opscan in {path} is not a table", remedy="Write [tool.opscan].")
    return SettingsFile(path=path, table=table, text=text)


def _ignore(table: dict[str, Any], where: str, place: Location) -> Ignore:
    known = ("reason", *_SELECTORS, "expires", "issue")
    for key in table:
        if key not in known:
            raise UsageError(
                f"{where} has an unknown key {key!r}",
                remedy=f"{suggest(key, known)}Known keys: {', '.join(known)}.",
            )
    if not str(table.get("reason", "")).strip():
        raise UsageError(
            f"{where} has no reason", remedy='Say why it is accepted: reason = "once an epoch".'
        )
    if not any(name in table for name in _SELECTORS):
        raise UsageError(
            f"{where} does not say what it is about",
            remedy=f"Give it one of {', '.join(_SELECTORS)}.",
        )
    try:
        ignore = msgspec.convert(table, Ignore)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}", remedy=what_it_takes(str(error))) from None
    rule = ignore.rule.upper() if ignore.rule else None
    return msgspec.structs.replace(ignore, rule=rule, place=place)


def what_it_takes(error: str) -> str:
    """What msgspec had expected, as advice."""
    wanted = re.search(r"Expected `(\w+)|encoded (date)", error)
    kind = (wanted[1] or wanted[2]) if wanted else ""
    return f"It takes {_WORDS.get(kind, kind)}." if kind else "Mend the value."


def _header_lines(text: str, number: int) -> list[int]:
    """Line of each ignore; of the file's first where they are not written as tables."""
    found = [text.count("\n", 0, each.start()) + 1 for each in _IGNORE_HEADER.finditer(text)]
    return found if len(found) == number else [1] * number
