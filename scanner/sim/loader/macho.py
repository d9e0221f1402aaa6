"""The load commands of an arm64 Mach-O library.

Facts are from Apple's `<mach-o/loader.h>`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["DyldInfo", "Library", "MachOError", "Section", "Segment", "parse"]

_MAGIC_64 = 0xFEEDFACF
_CPU_ARM64 = 0x0100000C
_LC_SYMTAB = 0x2
_LC_SEGMENT_64 = 0x19
_LC_DYLD_INFO = (0x22, 0x80000022)
_LC_CHAINED_FIXUPS = 0x80000034
_HEADER = 32
_SECTION = 80
_STAB = 0xE0
_TYPE = 0x0E
_DEFINED = 0x0E
_EXTERNAL = 0x01


class MachOError(Exception):
    """The file is not an arm64 Mach-O library, or is cut short."""


@dataclass(frozen=True)
class Section:
    """A named part of a segment; `address` is relative to the library."""

    segment: str
    name: str
    address: int
    size: int
    offset: int
    """In the file."""


@dataclass(frozen=True)
class Segment:
    """A part of the file that is mapped together; `address` is relative to the library."""

    name: str
    address: int
    size: int
    offset: int
    file_size: int


@dataclass(frozen=True)
class DyldInfo:
    """Places (offset, size) of the opcode streams of older libraries."""

    rebase: tuple[int, int]
    bind: tuple[int, int]
    weak_bind: tuple[int, int]
    lazy_bind: tuple[int, int]


@dataclass
class Library:
    """A parsed library; its bytes stay in the memory-mapped file."""

    path: Path
    data: npt.NDArray[np.uint8]
    segments: list[Segment] = field(default_factory=list)
    sections: dict[tuple[str, str], Section] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    """Defined symbols, local ones included; an external one wins over a local of its name."""
    dyld_info: DyldInfo | None = None
    chained_fixups: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """Bytes of address space, without the link-edit segment."""
        ends = [s.address + s.size for s in self.segments if s.name != "__LINKEDIT"]
        return max(ends, default=0)

    def slice(self, place: tuple[int, int]) -> bytes:
        """Bytes of the file at (offset, size)."""
        offset, size = place
        if offset + size > len(self.data):
            raise MachOError(f"{self.path.name} is cut short")
        return self.data[offset : offset + size].tobytes()

    def section(self, name: str) -> Section | None:
        """The first section of a name in any segment."""
        for (_, found), section in self.sections.items():
            if found == name:
                return section
        return None


def parse(path: Path) -> Library:
    """Reads the load commands and symbols of a thin arm64 library."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except ValueError as error:
        raise MachOError(f"{path.name} is empty") from error
    header = data[:_HEADER].tobytes()
    if len(header) < _HEADER:
        raise MachOError(f"{path.name} is cut short")
    magic, cpu, _, _, count, size = struct.unpack_from("<IIIIII", header)
    if magic != _MAGIC_64 or cpu != _CPU_ARM64:
        raise MachOError(f"{path.name} is not an arm64 Mach-O library")
    library = Library(path, data)
    commands = library.slice((_HEADER, size))
    offset = 0
    for _ in range(count):
        command, length = struct.unpack_from("<II", commands, offset)
        _read_command(library, command, commands[offset : offset + length])
        offset += length
    return library


def _read_command(library: Library, command: int, body: bytes) -> None:
    if command == _LC_SEGMENT_64:
        _read_segment(library, body)
    elif command in _LC_DYLD_INFO:
        words = struct.unpack_from("<10I", body, 8)
        library.dyld_info = DyldInfo(words[0:2], words[2:4], words[4:6], words[6:8])
    elif command == _LC_CHAINED_FIXUPS:
        offset, size = struct.unpack_from("<II", body, 8)
        library.chained_fixups = (offset, size)
    elif command == _LC_SYMTAB:
        library.symbols = _read_symbols(library, body)


def _read_segment(library: Library, body: bytes) -> None:
    address, size, offset, file_size = struct.unpack_from("<QQQQ", body, 24)
    name = _name(body[8:24])
    library.segments.append(Segment(name, address, size, offset, file_size))
    (count,) = struct.unpack_from("<I", body, 64)
    for index in range(count):
        at = 72 + _SECTION * index
        start, length, place = struct.unpack_from("<QQI", body, at + 32)
        section = Section(
            _name(body[at + 16 : at + 32]), _name(body[at : at + 16]), start, length, place
        )
        library.sections[section.segment, section.name] = section


def _read_symbols(library: Library, body: bytes) -> dict[str, int]:
    offset, count, strings_offset, strings_size = struct.unpack_from("<4I", body, 8)
    strings = library.slice((strings_offset, strings_size))
    layout = np.dtype(
        [("name", "<u4"), ("type", "u1"), ("section", "u1"), ("flags", "<u2"), ("value", "<u8")]
    )
    table = np.frombuffer(library.slice((offset, 16 * count)), layout)
    kind = table["type"]
    table = table[((kind & _STAB) == 0) & ((kind & _TYPE) == _DEFINED)]
    found: dict[str, int] = {}
    rows = zip(table["name"].tolist(), table["type"].tolist(), table["value"].tolist(), strict=True)
    for start, flags, value in rows:
        name = strings[start : strings.index(b"\0", start)].decode()
        if flags & _EXTERNAL or name not in found:
            found[name] = value
    return found


def _name(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode()
