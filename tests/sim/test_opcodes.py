from __future__ import annotations

import pytest

from scanner.sim.loader.opcodes import Bind, Rebase, binds, rebases

SEGMENTS = (0, 0x4000, 0x8000)


def test_rebases_of_every_kind() -> None:
    parts = [
        [0x11],  # type pointer
        [0x21, 0x10],  # segment 1, offset 0x10
        [0x52],  # two pointers
        [0x42],  # skip two pointers
        [0x60, 0x83, 0x01],  # 131 pointers
        [0x30, 0x08],  # skip 8 bytes
        [0x70, 0x18],  # one, then 0x18 more bytes
        [0x80, 0x02, 0x08],  # two, 8 bytes apart
        [0x00, 0x51],  # done; the rest is padding
    ]
    start = 0x4010
    after_list = start + 16 + 16
    last = after_list + 131 * 8 + 8
    assert rebases(b"".join(map(bytes, parts)), SEGMENTS) == [
        Rebase(start, 2, 8),
        Rebase(after_list, 131, 8),
        Rebase(last, 1, 0x20),
        Rebase(last + 0x20, 2, 16),
    ]


def test_binds_keep_symbol_and_addend_until_changed() -> None:
    parts = [
        [0x11],  # library ordinal 1
        [0x40, *b"_first", 0],
        [0x51],  # type pointer
        [0x72, 0x08],  # segment 2, offset 8
        [0x90],  # bind
        [0x60, 0x7F],  # addend -1
        [0xA0, 0x10],  # bind, then 0x10 more bytes
        [0x40, *b"_second", 0],
        [0xB1],  # bind, then one more pointer
        [0xC0, 0x02, 0x08],  # two, 8 bytes apart
        [0x00, 0x90],
    ]
    assert binds(b"".join(map(bytes, parts)), SEGMENTS) == [
        Bind(0x8008, "_first", 0),
        Bind(0x8010, "_first", -1),
        Bind(0x8028, "_second", -1),
        Bind(0x8038, "_second", -1),
        Bind(0x8048, "_second", -1),
    ]


def test_done_ends_one_entry_of_a_lazy_stream() -> None:
    stream = bytes([0x72, 0x00, 0x40, *b"_a", 0, 0x90, 0x00, 0x40, *b"_b", 0, 0x90, 0x00])
    assert [bind.symbol for bind in binds(stream, SEGMENTS, lazy=True)] == ["_a", "_b"]
    assert [bind.symbol for bind in binds(stream, SEGMENTS)] == ["_a"]


@pytest.mark.parametrize("read", [rebases, binds])
def test_unknown_opcodes_are_refused(read: object) -> None:
    with pytest.raises(ValueError, match="unknown"):
        read(bytes([0xF0]), SEGMENTS)  # type: ignore[operator]
