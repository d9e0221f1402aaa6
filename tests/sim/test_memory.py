from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.sim.machine.memory import PAGE, BadAddress, Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.close()


def test_both_sides_see_the_same_bytes(memory: Memory) -> None:
    region = memory.add(0x10000, 10, "small")
    assert region.size == PAGE
    memory.write(0x10004, b"abc\0")
    assert memory.read(0x10003, 5) == b"\0abc\0"
    assert ctypes.string_at(memory.host(0x10004)) == b"abc"
    assert memory.text(0x10004) == "abc"
    memory.set_u64(0x10008, -1)
    assert memory.u64(0x10008) == 0xFFFFFFFFFFFFFFFF
    assert memory.u32(0x1000C) == 0xFFFFFFFF
    assert memory.words(0x10000, 2) == (int.from_bytes(b"abc", "little") << 32, (1 << 64) - 1)


def test_accesses_outside_are_named(memory: Memory) -> None:
    region = memory.add(0x10000, PAGE, "only")
    for address, size in ((0, 1), (region.end, 1), (region.end - 4, 8), (0x10000, -1)):
        with pytest.raises(BadAddress, match=r"is not mapped|leaves only"):
            memory.read(address, size)
    assert memory.room(region.end - 4) == 4


def test_files_are_mapped_copy_on_write(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "content"
    file.write_bytes(b"original")
    other = Memory()
    first = memory.add(0x10000, 2 * PAGE, "first", file)
    other.add(0x10000, 2 * PAGE, "first", file)
    memory.write(0x10000, b"changed!")
    memory.write(0x10000 + PAGE, b"beyond the file")
    assert other.read(0x10000, 8) == b"original"
    assert file.read_bytes() == b"original"
    memory.restore(first)
    assert memory.read(0x10000, 8) == b"original"
    assert memory.read(0x10000 + PAGE, 6) == bytes(6)
    other.close()


def test_shared_memory_has_one_address_and_a_descriptor(memory: Memory) -> None:
    region = memory.add_shared(PAGE, "device", 0)
    assert region.start == region.host
    memory.write(region.start, b"hello")
    assert os.pread(region.descriptor, 5, 0) == b"hello"
    memory.discard(region)
    assert memory.read(region.start, 5) == bytes(5)


def test_shared_regions_of_one_process_stand_side_by_side() -> None:
    """Elsewhere other processes could not map them at the same address."""
    one, two = Memory(), Memory()
    try:
        hint, size = 0x60_0000_0000, 1 << 20
        places = [memory.add_shared(size, "device", hint).host for memory in (one, two)]
        assert places == [hint, hint + size]
    finally:
        one.close()
        two.close()
