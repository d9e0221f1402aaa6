"""Chained fixups of newer libraries.

Layouts are from Apple's `<mach-o/fixup-chains.h>`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scanner.sim.loader.opcodes import Bind

__all__ = ["Imported", "Slide", "fixups", "imports"]

_POINTER_64 = 2
_POINTER_64_OFFSET = 6
_NO_CHAIN = 0xFFFF
_STRIDE = 4


class Imported(NamedTuple):
    """A symbol that fixups may name by index."""

    symbol: str
    addend: int


class Slide(NamedTuple):
    """A pointer that is to hold the library's address plus an offset."""

    address: int
    offset: int
    high: int
    """Top byte, kept as it is."""


def imports(table: bytes) -> list[Imported]:
    """Reads the import table of a chained-fixups blob."""
    _, _, at, strings, count, kind, _ = struct.unpack_from("<7I", table)
    found = []
    for index in range(count):
        if kind == 1:
            (word,) = struct.unpack_from("<I", table, at + 4 * index)
            name, addend = word >> 9, 0
        elif kind == 2:
            word, addend = struct.unpack_from("<Ii", table, at + 8 * index)
            name = word >> 9
        else:
            word, addend = struct.unpack_from("<QQ", table, at + 16 * index)
            name = word >> 32
        start = strings + name
        found.append(Imported(table[start : table.index(b"\0", start)].decode(), addend))
    return found


def fixups(table: bytes, image: npt.NDArray[np.uint8]) -> Iterator[Bind | Slide]:
    """Walks every chain of a mapped image.

    The caller may overwrite a location once it is yielded: the next one is known by then.
    """
    names = imports(table)
    for location in _locations(table, image):
        address, word = location
        if word >> 63:
            symbol, addend = names[word & 0xFFFFFF]
            yield Bind(address, symbol, addend + (word >> 24 & 0xFF))
        else:
            yield Slide(address, word & 0xFFFFFFFFF, word >> 36 & 0xFF)


def _locations(table: bytes, image: npt.NDArray[np.uint8]) -> Iterator[tuple[int, int]]:
    (starts,) = struct.unpack_from("<I", table, 4)
    (count,) = struct.unpack_from("<I", table, starts)
    for offset in struct.unpack_from(f"<{count}I", table, starts + 4):
        if offset:
            yield from _segment(table, starts + offset, image)


def _segment(table: bytes, at: int, image: npt.NDArray[np.uint8]) -> Iterator[tuple[int, int]]:
    _, page_size, kind, segment, _, pages = struct.unpack_from("<IHHQIH", table, at)
    if kind not in (_POINTER_64, _POINTER_64_OFFSET):
        raise ValueError(f"unknown kind of chained pointer: {kind}")
    view = memoryview(image)  # type: ignore[arg-type]
    for page, first in enumerate(struct.unpack_from(f"<{pages}H", table, at + 22)):
        if first == _NO_CHAIN:
            continue
        address = segment + page * page_size + first
        while True:
            (word,) = struct.unpack_from("<Q", view, address)
            yield address, word
            step = word >> 51 & 0xFFF
            if not step:
                break
            address += step * _STRIDE
