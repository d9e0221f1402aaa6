"""An arm64 Mach-O library: its symbols, its strings, its bytes by address."""

from __future__ import annotations

import bisect
import mmap
from functools import cached_property
from pathlib import Path

import lief

__all__ = ["Image"]


class Image:
    """One dynamic library, opened for reading.

    Addresses are the library's own (preferred base 0). About 3 s and 3x the file's size in memory.
    """

    def __init__(self, path: Path) -> None:
        config = lief.MachO.ParserConfig()
        config.parse_dyld_exports = False
        config.parse_dyld_bindings = False
        config.parse_dyld_rebases = False
        fat = lief.MachO.parse(str(path), config)
        binary = fat.at(0) if fat is not None else None
        if binary is None:
            raise ValueError(f"{path} is not a Mach-O library")
        self._file = path.open("rb")
        self._bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._sections = [
            (s.virtual_address, s.virtual_address + s.size, s.offset, str(s.name), s.reserved1)
            for s in binary.sections
            if s.offset
        ]
        self.symbols: dict[int, str] = {}
        for symbol in binary.symbols:
            if symbol.value and symbol.numberof_sections:
                self.symbols.setdefault(symbol.value, str(symbol.name))
        starts, table = binary.function_starts, binary.dynamic_symbol_command
        if starts is None or table is None:
            raise ValueError(f"{path} is stripped")
        self._starts = sorted(set(starts.functions) | set(self.symbols))
        self._imports = [str(symbol.name) for symbol in table.indirect_symbols]

    def close(self) -> None:
        """Releases the file."""
        self._bytes.close()
        self._file.close()

    def section(self, address: int) -> str:
        """Name of the section that holds an address, empty when none does."""
        for low, high, _, name, _ in self._sections:
            if low <= address < high:
                return name
        return ""

    def read(self, start: int, end: int) -> bytes:
        """Bytes of an address range inside one section."""
        for low, high, offset, _, _ in self._sections:
            if low <= start < high:
                return self._bytes[start - low + offset : min(end, high) - low + offset]
        raise ValueError(f"{start:#x} is in no section")

    def cstring(self, address: int) -> str:
        """The NUL-terminated string at an address of `__cstring`."""
        for low, high, offset, name, _ in self._sections:
            if low <= address < high and name == "__cstring":
                start = address - low + offset
                return self._bytes[start : self._bytes.find(b"\0", start)].decode()
        return ""

    def strings(self, part: bytes) -> list[str]:
        """Strings of `__cstring` that contain some bytes."""
        found = []
        for low, high, offset, name, _ in self._sections:
            if name == "__cstring":
                content = self._bytes[offset : offset + high - low]
                found += [text.decode() for text in content.split(b"\0") if part in text]
        return found

    def end(self, start: int) -> int:
        """Where the function that starts at an address ends: the next function's start."""
        high = next(high for low, high, *_ in self._sections if low <= start < high)
        place = bisect.bisect_right(self._starts, start)
        return min(high, self._starts[place]) if place < len(self._starts) else high

    @cached_property
    def _stubs(self) -> dict[int, str]:
        """Address of each import stub → the symbol it jumps to."""
        stubs = {}
        for low, high, _, name, first in self._sections:
            if name == "__stubs":
                for place, address in enumerate(range(low, high, 12)):
                    stubs[address] = self._imports[first + place]
        return stubs

    def symbol(self, address: int) -> str:
        """Mangled name of the function at an address or behind the stub there, or empty."""
        return self.symbols.get(address) or self._stubs.get(address, "")
