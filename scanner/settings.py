"""Settings and where each comes from: flag > OPSCAN_* > [tool.opscan] > default."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from scanner.errors import UsageError
from scanner.judge.gate import FailOn

__all__ = ["Settings", "load_settings"]

_PREFIX = "OPSCAN_"
_FORMATS = Literal["text", "concise", "json", "html"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that steers a scan; `--fail-on` is OPSCAN_FAIL_ON is `fail-on` in the file."""

    target: tuple[str, ...] = ()
    """As for `--target`; in the environment separated by `;`."""
    mode: Literal["auto", "train", "infer"] = "auto"
    inputs: str | None = None
    entry: str | None = None
    """The only model to scan in each file, unless the argument says `file.py:name`."""
    device: str = "auto"
    format: _FORMATS = "text"
    fail_on: FailOn = "error"
    allow_incomplete: bool = False
    timeout: float = 120.0
    """Seconds that loading a file, and each model in it, may take."""
    origins: dict[str, str] = {}
    """Setting → where its value comes from; absent for defaults."""
    notes: tuple[str, ...] = ()
    """What looks like a mistake but may belong to someone else."""

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ValueError("must be more than 0 seconds")


_TYPES = {
    name: kind
    for name, kind in get_type_hints(Settings).items()
    if name not in {"origins", "notes"}
}


def load_settings(
    flags: Mapping[str, Any], environ: Mapping[str, str], directory: Path
) -> Settings:
    """Settings in force in `directory`.

    `flags` holds only what was given on the command line. Raises `UsageError` for an unknown key
    or a value that does not fit, naming the file or variable.
    """
    table, path = _from_file(directory)
    file = f"[tool.opscan] of {path}"
    layers = (
        ((name, value, file, True) for name, value in table.items()),
        ((name, value, _variable(name), False) for name, value in _variables(environ).items()),
        ((name, value, "the command line", True) for name, value in flags.items()),
    )
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        for name, value, origin, strict in layer:
            values[name] = _convert(name, value, origin, strict=strict)
            origins[name] = origin
    return _settings(values, origins, _misspelt(environ))


def _settings(values: dict[str, Any], origins: dict[str, str], notes: tuple[str, ...]) -> Settings:
    try:
        return Settings(**values, origins=origins, notes=notes)
    except ValueError as error:
        raise UsageError(f"timeout {error}", remedy=f"It is set in {origins['timeout']}.") from None


def _convert(name: str, value: Any, origin: str, *, strict: bool) -> Any:
    if get_origin(_TYPES[name]) is tuple and isinstance(value, str):
        value = [value]
    try:
        return msgspec.convert(value, _TYPES[name], strict=strict)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{_spelled(name)} cannot be {value!r} (set in {origin})",
            remedy=_allowed(name, value) or f"{error}.",
        ) from None


def _allowed(name: str, value: Any) -> str:
    choices = [choice for choice in get_args(_TYPES[name]) if isinstance(choice, str)]
    return f"{_suggest(str(value), choices)}It may be {', '.join(choices)}." if choices else ""


def _from_file(directory: Path) -> tuple[dict[str, Any], Path | None]:
    for folder in (directory, *directory.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and (table := _table(path)) is not None:
            return _checked(table, path), path
    return {}, None


def _table(path: Path) -> dict[str, Any] | None:
    """The file's [tool.opscan]; None when it has none, so that the search goes on upward."""
    try:
        document = msgspec.toml.decode(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="Mend the file.") from None
    tool = document.get("tool")
    table = tool.get("opscan") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"tool.opscan in {path} is not a table", remedy="Write [tool.opscan].")
    return table


def _checked(table: dict[str, Any], path: Path) -> dict[str, Any]:
    values = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in _TYPES:
            known = [_spelled(each) for each in _TYPES]
            raise UsageError(
                f"{path} has an unknown setting {key!r} in [tool.opscan]",
                remedy=_suggest(key, known) + f"Known settings: {', '.join(known)}.",
            )
        values[name] = value
    return values


def _variables(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: text for name in _TYPES if (text := environ.get(_variable(name), ""))
    }
    if "target" in values:
        values["target"] = [part.strip() for part in values["target"].split(";") if part.strip()]
    return values


def _variable(name: str) -> str:
    return _PREFIX + name.upper()


def _misspelt(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that look like ours; a note, since other programs may share the prefix."""
    known = [_variable(name) for name in _TYPES]
    return tuple(
        f"{name} is not a setting of opscan. {_suggest(name, known)}".rstrip()
        for name in sorted(environ)
        if name.startswith(_PREFIX) and name not in known
    )


def _suggest(word: str, known: list[str]) -> str:
    near = get_close_matches(word, known, n=1)
    return f"Did you mean {near[0]}? " if near else ""


def _spelled(name: str) -> str:
    return name.replace("_", "-")
