"""The libraries of a release: what is in memory, and the Metal libraries inside.

Plain records: everything may know them without loading the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

__all__ = ["BundledLibrary", "Loaded"]


class Loaded(msgspec.Struct, frozen=True):
    """A library in memory. Section places are (library-relative address, size)."""

    name: str
    base: int
    size: int
    sections: dict[str, tuple[int, int]]
    """`segment,section` → place."""

    def section(self, segment: str, name: str) -> tuple[int, int]:
        """Absolute address and size; (0, 0) when there is none."""
        address, size = self.sections.get(f"{segment},{name}", (0, 0))
        return (self.base + address, size) if size else (0, 0)


@dataclass(frozen=True)
class BundledLibrary:
    """A compiled Metal library inside a dylib."""

    name: str
    """Section: `metal_basic`."""
    start: int
    size: int
    kernels: frozenset[str]
