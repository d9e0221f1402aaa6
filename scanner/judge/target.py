"""Reads targets: `torch==2.9.1,macos=15.5,chip=M3,ram=16,fallback=1`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from scanner.errors import UsageError
from scanner.records import Target

__all__ = ["parse_target", "parse_targets"]

_EXAMPLE = "torch==2.9.1,macos=15.5,chip=M3,ram=16,fallback=1"
_OLDEST_MACOS = (12, 3)
"""MPS came with it."""

Resolve = Callable[[str], str]
"""From a version as typed (empty for the newest) to a release; raises `UsageError`."""


def parse_targets(texts: Iterable[str], resolve: Resolve) -> tuple[Target, ...]:
    """Every target once, in order."""
    return tuple(dict.fromkeys(parse_target(text, resolve) for text in texts))


def parse_target(text: str, resolve: Resolve) -> Target:
    """The target that `text` spells; raises `UsageError` that names the part at fault."""
    framework, *settings = [part.strip() for part in text.split(",")]
    version = _framework(framework, text)
    values: dict[str, Any] = {}
    for setting in settings:
        key, value = _setting(setting, text)
        if key in values:
            raise UsageError(f"target {text!r} says {key} twice", remedy="Say it once.")
        values[key] = _PARSERS[key](value)
    return Target(framework="torch", version=resolve(version), **values)


def _framework(part: str, text: str) -> str:
    match = re.fullmatch(r"([A-Za-z][\w-]*)\s*(?:={1,2}\s*([^\s=]\S*))?", part)
    name = match[1].lower() if match else ""
    if name in {"tensorflow", "tf", "tensorflow-metal"}:
        raise UsageError(
            "TensorFlow targets are not supported yet", remedy="Name a torch release: torch==2.9.1."
        )
    if re.fullmatch(r"(py)?torch\s*=+", part.lower()):
        raise UsageError(f"target {text!r} gives no version", remedy=f"Write {_EXAMPLE}.")
    if match is None or name not in {"torch", "pytorch"}:
        raise UsageError(
            f"target {text!r} does not begin with a framework",
            remedy=f"Write it like {_EXAMPLE}; everything after the version is optional.",
        )
    return match[2] or ""


def _setting(part: str, text: str) -> tuple[str, str]:
    key, equals, value = (piece.strip() for piece in part.partition("="))
    if key not in _PARSERS:
        near = get_close_matches(key, _PARSERS, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"target {text!r} has an unknown part {part!r}",
            remedy=f"{hint}Known parts: {', '.join(_PARSERS)}. Example: {_EXAMPLE}",
        )
    value = value.removeprefix("=").strip()
    if not equals or not value:
        raise UsageError(f"target {text!r} gives no value for {key}", remedy=f"Write {_EXAMPLE}.")
    return key, value


def _macos(value: str) -> str:
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){0,2}", value):
        raise UsageError(f"{value!r} is not a macOS version", remedy="Write macos=15.5.")
    parts = tuple(int(part) for part in value.split("."))
    if parts + (99,) * (2 - len(parts)) < _OLDEST_MACOS:
        raise UsageError(f"macOS {value} has no MPS", remedy="MPS needs macOS 12.3 or later.")
    return value


def _chip(value: str) -> str:
    match = re.fullmatch(r"(?:apple)?[ _-]*m([0-9]{1,3})[ _-]*(pro|max|ultra)?", value.lower())
    if match is None:
        raise UsageError(
            f"{value!r} is not an Apple-silicon chip",
            remedy='Write chip=M3 or chip="M3 Max". Intel Macs are not judged.',
        )
    return f"M{match[1]}" + (f" {match[2].title()}" if match[2] else "")


def _ram(value: str) -> int:
    match = re.fullmatch(r"([0-9]{1,6})\s*(?:gi?b?)?", value.lower())
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{value!r} is not a memory size in GiB", remedy="Write ram=16.")
    return int(match[1])


def _fallback(value: str) -> bool:
    flags = {"1": True, "true": True, "on": True, "yes": True}
    flags |= {"0": False, "false": False, "off": False, "no": False}
    if value.lower() not in flags:
        raise UsageError(f"{value!r} is neither on nor off", remedy="Write fallback=1.")
    return flags[value.lower()]


_PARSERS: dict[str, Callable[[str], Any]] = {
    "macos": _macos,
    "chip": _chip,
    "ram": _ram,
    "fallback": _fallback,
}
