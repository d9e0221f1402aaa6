"""C scanning formats, as far as releases use them: integers, words, sets of characters."""

from __future__ import annotations

import re

from scanner.sim.machine.cpu import Cpu, Handler
from scanner.sim.machine.faults import Fault
from scanner.sim.osenv.printf import Arguments, stack_arguments

__all__ = ["imports", "scanned"]

_DIRECTIVE = re.compile(
    r"%(?P<skip>\*)?(?P<width>\d+)?(?P<length>hh|h|ll|l|z)?(?P<kind>[duxs]|\[\^?\]?[^\]]*\])"
    r"|(?P<space>\s+)|(?P<text>.)",
    re.S,
)
_PATTERNS = {"d": r"\s*([-+]?\d{1,%s})", "u": r"\s*(\d{1,%s})", "s": r"\s*(\S{1,%s})"}
_PATTERNS["x"] = r"\s*((?:0[xX])?[0-9a-fA-F]{1,%s})"
_SIZES = {"hh": 1, "h": 2, "l": 8, "ll": 8, "z": 8}


def imports() -> dict[str, Handler]:
    """Handlers by import name."""

    def sscanf(cpu: Cpu) -> None:
        text, form = cpu.memory.text(cpu.x(0)), cpu.memory.text(cpu.x(1))
        cpu.set_x(0, scanned(text, form, stack_arguments(cpu)))

    return {"_sscanf": sscanf}


def scanned(text: str, form: str, arguments: Arguments) -> int:
    """Stores what a format finds in a text; returns how many arguments were stored.

    -1 when the text ends before the first of them. Raises Fault for a format that is not known.
    """
    at = stored = 0
    for directive in _DIRECTIVE.finditer(form):
        kind = directive["kind"]
        if directive["text"] == "%":
            raise Fault(f"the scanning format {form!r} is not imitated")
        if kind is None:
            found = re.compile(r"\s*" if directive["space"] else re.escape(directive["text"]))
            match = found.match(text, at)
        else:
            match = _pattern(kind, directive["width"]).match(text, at)
        if match is None:
            return stored if stored or at < len(text) else -1
        at = match.end()
        if kind is not None and not directive["skip"]:
            _store(arguments, match[1], kind, _SIZES.get(directive["length"] or "", 4))
            stored += 1
    return stored


def _pattern(kind: str, width: str | None) -> re.Pattern[str]:
    if kind.startswith("["):
        return re.compile(f"({_set(kind)}{{1,{width or ''}}})")
    return re.compile(_PATTERNS[kind] % (width or ""))


def _set(kind: str) -> str:
    inside = kind[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    return f"[{inside}]"


def _store(arguments: Arguments, found: str, kind: str, size: int) -> None:
    address = arguments.word()
    if kind == "s" or kind.startswith("["):
        arguments.memory.write(address, found.encode() + b"\0")
        return
    value = int(found, 16 if kind == "x" else 10) % (1 << 8 * size)
    arguments.memory.write(address, value.to_bytes(size, "little"))
