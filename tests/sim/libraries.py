"""Writes small Mach-O libraries."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

TEXT, DATA = 0x0, 0x4000
PAGE = 0x4000
_MAGIC, _ARM64, _DYLIB = 0xFEEDFACF, 0x0100000C, 6


@dataclass
class Draft:
    """A library with one page of code at 0 and one page of data at 0x4000."""

    symbols: dict[str, int] = field(default_factory=dict)
    """Name → relative address; all external."""
    data: bytes = b""
    sections: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Segment, section, relative address, size."""
    rebase: bytes = b""
    bind: bytes = b""
    lazy: bytes = b""
    chained: bytes = b""
    cpu: int = _ARM64
    magic: int = _MAGIC

    def write(self, path: Path) -> Path:
        """Writes the file."""
        edit, places = self._link_edit(2 * PAGE)
        commands = [
            _segment("__TEXT", TEXT, PAGE, 0, PAGE, []),
            _segment("__DATA", DATA, PAGE, PAGE, PAGE, self.sections),
            _segment("__LINKEDIT", 2 * PAGE, PAGE, 2 * PAGE, len(edit), []),
            *places,
        ]
        body = b"".join(commands)
        header = struct.pack(
            "<IIIIIIII", self.magic, self.cpu, 0, _DYLIB, len(commands), len(body), 0, 0
        )
        text = (header + body).ljust(PAGE, b"\0")
        path.write_bytes(text + self.data.ljust(PAGE, b"\0") + edit)
        return path

    def _link_edit(self, start: int) -> tuple[bytes, list[bytes]]:
        edit = bytearray()

        def add(part: bytes) -> tuple[int, int]:
            place = (start + len(edit), len(part))
            edit.extend(part.ljust((len(part) + 7) // 8 * 8, b"\0"))
            return place

        names, table = b"\0", b""
        for name, value in self.symbols.items():
            table += struct.pack("<IBBHQ", len(names), 0x0F, 1, 0, value)
            names += name.encode() + b"\0"
        symbols, strings = add(table), add(names)
        commands = [
            struct.pack("<IIIIII", 0x2, 24, symbols[0], len(self.symbols), *strings),
        ]
        if self.chained:
            commands.append(struct.pack("<IIII", 0x80000034, 16, *add(self.chained)))
        else:
            parts = [add(self.rebase), add(self.bind), (0, 0), add(self.lazy), (0, 0)]
            flat = [word for part in parts for word in part]
            commands.append(struct.pack("<12I", 0x80000022, 48, *flat))
        return bytes(edit), commands


def _segment(
    name: str,
    address: int,
    size: int,
    offset: int,
    file_size: int,
    sections: list[tuple[str, str, int, int]],
) -> bytes:
    body = b"".join(
        struct.pack(
            "<16s16sQQIIIIIIII",
            section.encode(),
            segment.encode(),
            start,
            length,
            offset + start - address,
            *[0] * 7,
        )
        for segment, section, start, length in sections
    )
    head = struct.pack(
        "<II16sQQQQIIII",
        0x19,
        72 + len(body),
        name.encode(),
        address,
        size,
        offset,
        file_size,
        7,
        7,
        len(sections),
        0,
    )
    return head + body


def chained_table(imports: list[tuple[str, int]], starts: list[int]) -> bytes:
    """A chained-fixups blob for the data page; imports have addends; chains start at offsets.

    Only one chain start fits a page.
    """
    (start,) = starts
    names, table = b"", b""
    for name, addend in imports:
        table += struct.pack("<Ii", len(names) << 9, addend)
        names += name.encode() + b"\0"
    header_size, image_starts = 28, 28
    segment = struct.pack("<IHHQIHH", 24, PAGE, 6, DATA, 0, 1, start)
    offsets = struct.pack("<IIII", 3, 0, 16, 0)
    imports_at = image_starts + len(offsets) + len(segment)
    names_at = imports_at + len(table)
    header = struct.pack("<7I", 0, image_starts, imports_at, names_at, len(imports), 2, 0)
    assert len(header) == header_size
    return header + offsets + segment + table + names


def chained_bind(ordinal: int, addend: int, step: int) -> int:
    """A pointer word of a chain that binds an import; `step` counts 4 bytes."""
    return 1 << 63 | step << 51 | addend << 24 | ordinal


def chained_slide(offset: int, step: int, high: int = 0) -> int:
    """A pointer word of a chain that slides."""
    return step << 51 | high << 36 | offset
