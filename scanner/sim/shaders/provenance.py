"""Where the pointers of a function come from, read off its assembly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from . import ir

__all__ = ["Root", "trace_pointers"]

_ASSIGN = re.compile(r"^\s+(%[\w.$-]+) = (\w+) (.*)$")
_NAME = re.compile(r"%[\w.$-]+")
_THROUGH = {"bitcast", "addrspacecast", "freeze", "getelementptr"}
_POINTER = re.compile(r"ptr(?: addrspace\(\d+\))? ([%@][\w.$-]+|getelementptr[^,]*\([^)]*\))")


@dataclass(frozen=True)
class Root:
    """What a pointer was made of."""

    kind: Literal["argument", "global", "stack", "unknown"]
    name: str = ""
    """`%3` or `@array`; empty for unknown."""
    varying: bool = False
    """Whether an index that is not constant was added."""


def _operands(operation: str, rest: str) -> list[str]:
    if operation == "phi":
        return re.findall(r"\[ ([^,]+), ", rest)
    if operation == "select":
        return [p.split()[-1] for p in ir.split(rest)[1:3]]
    match = _POINTER.search(rest)
    return [match[1]] if match else []


def _constant_indices(rest: str) -> bool:
    return not any(_NAME.search(part) for part in ir.split(rest)[2:])


class _Tracer:
    """Follows definitions back; each name's roots are found once."""

    def __init__(self, lines: list[str], arguments: set[str]) -> None:
        self._arguments = arguments
        self._defined: dict[str, tuple[str, str]] = {}
        for line in lines:
            if match := _ASSIGN.match(line):
                self._defined[match[1]] = (match[2], match[3])

    def roots(self, start: str) -> set[Root]:
        """All roots of a pointer; loops through phi nodes are followed once."""
        found: set[Root] = set()
        pending: list[tuple[str, bool]] = [(start, False)]
        seen: set[tuple[str, bool]] = set()
        while pending:
            name, varying = pending.pop()
            if (name, varying) in seen:
                continue
            seen.add((name, varying))
            if (end := self._end(name, varying)) is not None:
                found.add(end)
                continue
            operation, rest = self._defined[name]
            varying = varying or (operation == "getelementptr" and not _constant_indices(rest))
            pending += [(operand, varying) for operand in _operands(operation, rest)]
        return found

    def allocated(self, name: str) -> str | None:
        """The type of a stack allocation of fixed size."""
        parts = ir.split(self._defined[name][1])
        fixed = len(parts) < 2 or not parts[1].startswith("i")
        return parts[0] if fixed else None

    def _end(self, name: str, varying: bool) -> Root | None:
        if name.startswith("@"):
            return Root("global", name, varying)
        if name in self._arguments:
            return Root("argument", name, varying)
        operation, _ = self._defined.get(name, ("", ""))
        if operation == "alloca":
            return Root("stack", name, varying)
        if operation in _THROUGH or operation in ("phi", "select"):
            return None
        return Root("unknown", "", True)


def trace_pointers(lines: list[str], arguments: set[str]) -> _Tracer:
    """A tracer over the lines of one function whose pointer parameters are `arguments`."""
    return _Tracer(lines, arguments)


def single(roots: set[Root]) -> Root:
    """The one root that all agree on, or an unknown one."""
    names = {(r.kind, r.name) for r in roots}
    if len(names) != 1:
        return Root("unknown", "", True)
    kind, name = next(iter(names))
    return Root(kind, name, any(r.varying for r in roots))
