"""Places libraries in memory and connects them.

Symbols are looked up in a flat namespace, in the order of the libraries, so that a library
placed first interposes its functions. What no library defines is asked of `outside`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scanner.sim.loader import chained, opcodes
from scanner.sim.loader.macho import Library, parse
from scanner.sim.machine.memory import PAGE, Memory

__all__ = ["Image", "Outside", "initialisers", "link"]

_BASE = 0x1_0000_0000
_GAP = 0x100_0000
_MASK = 0xFFFFFFFFFFFFFFFF
_DESCRIPTOR = 24

Outside = Callable[[str], int]
"""Address of a symbol that no library defines."""


@dataclass
class Image:
    """A library at its address in memory."""

    library: Library
    base: int
    bytes: npt.NDArray[np.uint8]
    symbols: dict[str, int] = field(default_factory=dict)
    """Absolute addresses."""

    @property
    def name(self) -> str:
        """File name of the library."""
        return self.library.path.name

    @property
    def size(self) -> int:
        """Bytes of address space, in whole pages."""
        return (self.library.size + PAGE - 1) // PAGE * PAGE


def link(
    paths: Iterable[Path],
    memory: Memory,
    outside: Outside,
    thread_block: Callable[[bytes, int], int],
    thread_getter: int,
) -> list[Image]:
    """Maps, rebases and binds libraries.

    `thread_block(content, size)` gives memory for the only thread's variables of one library;
    `thread_getter` is code that a thread-local descriptor calls to find its variable.
    """
    images = [_place(library, memory, base) for library, base in _bases(paths)]
    defined: dict[str, int] = {}
    for image in reversed(images):
        defined.update(image.symbols)

    def resolve(symbol: str) -> int:
        found = defined.get(symbol)
        return outside(symbol) if found is None else found

    for image in images:
        _fix(image, resolve)
        _thread_locals(image, thread_block, thread_getter)
    return images


def initialisers(image: Image) -> list[int]:
    """Addresses of a linked library's static initialisers, in order."""
    found: list[int] = []
    for name, width in (("__mod_init_func", "<u8"), ("__init_offsets", "<u4")):
        section = image.library.section(name)
        if section is not None:
            raw = image.bytes[section.address : section.address + section.size]
            offset = image.base if name == "__init_offsets" else 0
            found += [offset + int(value) for value in raw.view(width)]
    return found


def _bases(paths: Iterable[Path]) -> Iterable[tuple[Library, int]]:
    base = _BASE
    for path in paths:
        library = parse(path)
        yield library, base
        base = (base + library.size + 2 * _GAP - 1) // _GAP * _GAP


def _place(library: Library, memory: Memory, base: int) -> Image:
    region = memory.add(base, library.size, library.path.name)
    content = np.frombuffer(memory.view(base, region.size), np.uint8)
    for segment in library.segments:
        if segment.name != "__LINKEDIT" and segment.file_size:
            source = library.data[segment.offset : segment.offset + segment.file_size]
            content[segment.address : segment.address + segment.file_size] = source
    symbols = {name: base + value for name, value in library.symbols.items()}
    return Image(library, base, content, symbols)


def _fix(image: Image, resolve: Callable[[str], int]) -> None:
    if image.library.chained_fixups is not None:
        _fix_chained(image, image.library.slice(image.library.chained_fixups), resolve)
    elif image.library.dyld_info is not None:
        _fix_opcodes(image, resolve)


def _fix_chained(image: Image, table: bytes, resolve: Callable[[str], int]) -> None:
    known: dict[str, int] = {}
    view = memoryview(image.bytes)  # type: ignore[arg-type]
    for fixup in chained.fixups(table, image.bytes):
        if isinstance(fixup, opcodes.Bind):
            if fixup.symbol not in known:
                known[fixup.symbol] = resolve(fixup.symbol)
            value = known[fixup.symbol] + fixup.addend
        else:
            value = image.base + fixup.offset | fixup.high << 56
        struct.pack_into("<Q", view, fixup.address, value & _MASK)


def _fix_opcodes(image: Image, resolve: Callable[[str], int]) -> None:
    info = image.library.dyld_info
    assert info is not None
    segments = [segment.address for segment in image.library.segments]
    words = image.bytes.view(np.uint64)
    for run in opcodes.rebases(image.library.slice(info.rebase), segments):
        places = run.address + run.stride * np.arange(run.number, dtype=np.int64)
        words[places >> 3] += np.uint64(image.base)
    known: dict[str, int] = {}
    for place, lazy in ((info.bind, False), (info.weak_bind, False), (info.lazy_bind, True)):
        for bind in opcodes.binds(image.library.slice(place), segments, lazy=lazy):
            if bind.symbol not in known:
                known[bind.symbol] = resolve(bind.symbol)
            words[bind.address >> 3] = (known[bind.symbol] + bind.addend) & _MASK


def _thread_locals(image: Image, block: Callable[[bytes, int], int], getter: int) -> None:
    """Fills in the descriptors: code that finds the variable, the block, the offset in it."""
    variables = image.library.section("__thread_vars")
    if variables is None:
        return
    parts = [image.library.section(name) for name in ("__thread_data", "__thread_bss")]
    present = [part for part in parts if part is not None and part.size]
    start = present[0].address
    end = max(part.address + part.size for part in present)
    base = block(image.bytes[start:end].tobytes(), end - start)
    for at in range(variables.address, variables.address + variables.size, _DESCRIPTOR):
        image.bytes[at : at + 16].view(np.uint64)[:] = (getter, base)
