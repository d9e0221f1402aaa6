from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from scanner.sim.loader.link import Image, initialisers, link
from tests.sim.bench import Bench
from tests.sim.libraries import (
    DATA,
    Draft,
    chained_bind,
    chained_slide,
    chained_table,
)

OUTSIDE = 0xABC000


def linked(bench: Bench, *paths: Path) -> tuple[list[Image], list[str]]:
    asked: list[str] = []

    def outside(symbol: str) -> int:
        asked.append(symbol)
        return OUTSIDE

    imports = bench.imports
    images = link(paths, bench.memory, outside, imports.thread_block, imports.thread_getter())
    return images, asked


def word(image: Image, offset: int) -> int:
    return int(struct.unpack_from("<Q", image.bytes, DATA + offset)[0])


def test_opcode_libraries_are_rebased_and_bound(bench: Bench, tmp_path: Path) -> None:
    one = Draft(
        symbols={"_shared": 0x20},
        data=struct.pack("<QQ", 0x123, 0),
        rebase=bytes([0x11, 0x21, 0x00, 0x51, 0x00]),
        bind=bytes([0x71, 0x08, 0x40, *b"_printf", 0, 0x60, 0x04, 0x90, 0x00]),
    ).write(tmp_path / "one.dylib")
    two = Draft(lazy=bytes([0x71, 0x10, 0x40, *b"_shared", 0, 0x90, 0x00])).write(
        tmp_path / "two.dylib"
    )
    (first, second), asked = linked(bench, one, two)
    assert word(first, 0) == first.base + 0x123
    assert word(first, 8) == OUTSIDE + 4
    assert word(second, 16) == first.base + 0x20
    assert asked == ["_printf"]


def test_the_first_library_interposes(bench: Bench, tmp_path: Path) -> None:
    bind = bytes([0x71, 0x00, 0x40, *b"_malloc", 0, 0x90, 0x00])
    ours = Draft(symbols={"_malloc": 0x40}).write(tmp_path / "ours.dylib")
    theirs = Draft(symbols={"_malloc": 0x80}, bind=bind).write(tmp_path / "theirs.dylib")
    (first, second), asked = linked(bench, ours, theirs)
    assert word(second, 0) == first.base + 0x40
    assert asked == []


def test_chained_libraries_are_rebased_and_bound(bench: Bench, tmp_path: Path) -> None:
    data = struct.pack(
        "<QQQQ",
        0,
        chained_slide(0x123, 2, high=0x80),
        chained_bind(0, 3, 2),
        chained_bind(1, 0, 0),
    )
    table = chained_table([("_outer", 16), ("_own", 0)], [8])
    path = Draft(symbols={"_own": 0x30}, data=data, chained=table).write(tmp_path / "a.dylib")
    (image,), asked = linked(bench, path)
    assert word(image, 0) == 0
    assert word(image, 8) == image.base + 0x123 | 0x80 << 56
    assert word(image, 16) == OUTSIDE + 16 + 3
    assert word(image, 24) == image.base + 0x30
    assert asked == ["_outer"]


def test_initialisers_of_both_kinds(bench: Bench, tmp_path: Path) -> None:
    pointers = Draft(
        data=struct.pack("<Q", 0x40),
        sections=[("__DATA", "__mod_init_func", DATA, 8)],
        rebase=bytes([0x11, 0x21, 0x00, 0x51, 0x00]),
    ).write(tmp_path / "pointers.dylib")
    offsets = Draft(
        data=struct.pack("<II", 0x50, 0x60),
        sections=[("__DATA", "__init_offsets", DATA, 8)],
    ).write(tmp_path / "offsets.dylib")
    (one, two), _ = linked(bench, pointers, offsets)
    assert initialisers(one) == [one.base + 0x40]
    assert initialisers(two) == [two.base + 0x50, two.base + 0x60]


def test_thread_variables_are_found_by_code(bench: Bench, tmp_path: Path) -> None:
    """A descriptor is {code, block, offset}; calling the code gives the variable's address."""
    descriptors, content = DATA, DATA + 24
    data = struct.pack("<QQQ", 0, 0, 8) + struct.pack("<QQ", 11, 22)
    sections = [
        ("__DATA", "__thread_vars", descriptors, 24),
        ("__DATA", "__thread_data", content, 16),
    ]
    path = Draft(data=data, sections=sections).write(tmp_path / "tls.dylib")
    (image,), _ = linked(bench, path)
    bench.cpu.map(bench.memory.region(image.base))
    address = bench.cpu.call(word(image, 0), [image.base + descriptors])
    assert bench.memory.u64(address) == 22


def test_images_do_not_overlap(bench: Bench, tmp_path: Path) -> None:
    names: Callable[[int], Path] = lambda index: tmp_path / f"{index}.dylib"  # noqa: E731
    images, _ = linked(bench, *[Draft().write(names(index)) for index in range(3)])
    ends = [image.base + image.size for image in images]
    assert all(end <= image.base for end, image in zip(ends, images[1:], strict=False))
