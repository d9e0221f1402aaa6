from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scanner.sim.metal.storage import DeviceMemory

START, SIZE = 0x1000, 1 << 16


def test_ranges_do_not_overlap_and_holes_are_used_again() -> None:
    memory = DeviceMemory(START, 1024)
    first, second, third = (memory.allocate(256) for _ in range(3))
    assert [first, second, third] == [START, START + 256, START + 512]
    assert memory.allocate(512) == 0
    memory.free(second, 256)
    assert memory.allocate(200) == second
    memory.free(first, 256)
    memory.free(second, 200)
    assert memory.largest() == 512


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=60))
def test_freeing_everything_leaves_one_hole(steps: list[tuple[bool, int]]) -> None:
    memory = DeviceMemory(START, SIZE)
    taken: list[tuple[int, int]] = []
    for take, size in steps:
        if take:
            address = memory.allocate(size)
            if address:
                assert address >= START
                assert address + size <= START + SIZE
                assert all(address + size <= a or a + s <= address for a, s in taken)
                taken.append((address, size))
        elif taken:
            memory.free(*taken.pop(size % len(taken)))
    for address, size in taken:
        memory.free(address, size)
    assert memory.largest() == SIZE
    assert memory.in_use == 0
