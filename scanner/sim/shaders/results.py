"""How a launch ends: it ran, it ran and something was found, or it could not be run."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Finding", "Findings", "NotExecutable", "Outcome", "Ran"]


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """The kernel ran; the buffers hold its results."""

    seconds: float = 0.0
    """Wall time on the CPU. It says nothing of a GPU."""
    notes: tuple[Finding, ...] = ()
    """Accesses past what the host asked for, inside what was allocated."""


class NotExecutable(msgspec.Struct, frozen=True, tag="not-executable"):
    """Nothing is known: the kernel did not run, or not to its end. Buffers may be half written."""

    reason: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something a kernel did that Metal leaves undefined."""

    kind: Literal["read", "write", "division"]
    """Read or write out of bounds; integer division by zero."""
    argument: int = -1
    """Buffer index; -1 where the memory is not an argument's."""
    name: str = ""
    """The source's name of the argument or array."""
    count: int = 0
    """How often, over all threads."""
    offset: int = 0
    """Bytes from the start of the binding, at the first time; 0 for a division."""
    length: int = 0
    """Bytes of the binding."""
    inside: bool = False
    """The access took place: it is past the tensor's end, but inside its allocation."""

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" ({self.count} times)"
        if self.kind == "division":
            return f"divides an integer by zero{times}"
        verb = "reads" if self.kind == "read" else "writes"
        if self.argument >= 0:
            where = f"buffer {self.argument} ({self.name}, {self.length} bytes)"
        else:
            where = f"array {self.name}" if self.name else "memory it has no buffer for"
        place = (
            f"past the end of {where}, inside its allocation,"
            if self.inside
            else f"outside {where}"
        )
        return f"{verb} {place} at byte {self.offset}{times}"


class Findings(msgspec.Struct, frozen=True, tag="findings"):
    """The kernel ran; accesses out of bounds read zero or were dropped."""

    kernel: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0
    notes: tuple[Finding, ...] = ()
    """As for `Ran`."""


Outcome = Ran | NotExecutable | Findings
