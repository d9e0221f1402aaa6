"""Settings and where each comes from: flag > OPSCAN_* > settings file > default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from scanner.errors import UsageError
from scanner.judge.gate import FailOn
from scanner.settings_file import SettingsFile, read_ignores, settings_file, suggest, what_it_takes
from scanner.suppress.interface import Ignore

__all__ = ["NAMES", "Settings", "load_settings", "spelled"]

_PREFIX = "OPSCAN_"
_FORMATS = Literal[
    "text", "concise", "json", "jsonl", "sarif", "junit", "github", "markdown", "html"
]


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
    baseline: str | None = None
    """File of known findings; in a settings file relative to that file."""
    ignore: tuple[Ignore, ...] = ()
    """Only from a settings file."""
    prefix: str = ""
    """From the settings file's directory to the working directory: `packages/nets/`, or empty."""
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
    if name not in {"origins", "notes", "prefix"}
}
NAMES = tuple(_TYPES)
"""Every setting, in the order in which they are shown."""
_FILE_ONLY = frozenset({"ignore"})


def load_settings(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    directory: Path,
    *,
    config: Path | None = None,
    isolated: bool = False,
) -> Settings:
    """Settings in force in `directory`.

    `flags` holds only what was given on the command line. The file is `config`, else the nearest
    upward, and none with `isolated`. Raises `UsageError` for an unknown key or a value that does
    not fit, naming the file or variable.
    """
    file = settings_file(directory, config, isolated=isolated)
    prefix = _prefix(file.path, directory)
    layers = (
        ((name, value, file.origin, True) for name, value in _of_file(file, prefix).items()),
        ((name, value, _variable(name), False) for name, value in _variables(environ).items()),
        ((name, value, "the command line", True) for name, value in flags.items()),
    )
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        for name, value, origin, strict in layer:
            values[name] = _convert(name, value, origin, strict=strict)
            origins[name] = origin
    return _settings({**values, "prefix": prefix}, origins, _misspelt(environ))


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
            f"{spelled(name)} cannot be {value!r} (set in {origin})",
            remedy=_allowed(name, value) or what_it_takes(str(error)),
        ) from None


def _allowed(name: str, value: Any) -> str:
    choices = [choice for choice in get_args(_TYPES[name]) if isinstance(choice, str)]
    return f"{suggest(str(value), choices)}It may be {', '.join(choices)}." if choices else ""


def _of_file(file: SettingsFile, prefix: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in file.table.items():
        name = key.replace("-", "_")
        if name not in _TYPES:
            known = [spelled(each) for each in _TYPES]
            raise UsageError(
                f"{file.path} has an unknown setting {key!r}{file.section}",
                remedy=suggest(key, known) + f"Known settings: {', '.join(known)}.",
            )
        values[name] = value
    if "ignore" in values:
        values["ignore"] = read_ignores(values["ignore"], file, _shown(file.path, prefix))
    if file.path is not None and isinstance(values.get("baseline"), str):
        values["baseline"] = str(file.path.parent / values["baseline"])
    return values


def _prefix(path: Path | None, directory: Path) -> str:
    """Empty where the file is not above the directory: what it says is then about paths here."""
    if path is None or not directory.resolve().is_relative_to(folder := path.resolve().parent):
        return ""
    below = directory.resolve().relative_to(folder).as_posix()
    return "" if below == "." else f"{below}/"


def _shown(path: Path | None, prefix: str) -> str:
    """The file as findings name it: relative to the working directory."""
    return "../" * prefix.count("/") + path.name if path is not None else ""


def _variables(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: text
        for name in _TYPES
        if name not in _FILE_ONLY and (text := environ.get(_variable(name), ""))
    }
    if "target" in values:
        values["target"] = [part.strip() for part in values["target"].split(";") if part.strip()]
    return values


def _variable(name: str) -> str:
    return _PREFIX + name.upper()


def _misspelt(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that look like ours; a note, since other programs may share the prefix."""
    known = [_variable(name) for name in _TYPES if name not in _FILE_ONLY]
    return tuple(
        f"{name} is not a setting of opscan. {suggest(name, known)}".rstrip()
        for name in sorted(environ)
        if name.startswith(_PREFIX) and name not in known
    )


def spelled(name: str) -> str:
    """As in a file or after `--`: `fail-on`."""
    return name.replace("_", "-")
