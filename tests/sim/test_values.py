from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from scanner.sim.machine.memory import Memory
from scanner.sim.values import ITEM_SIZES, Arena, HostTensor, decode, encode, from_torch

NONE, TENSOR, INT, FLOAT, BOOL, COMPLEX, STRING, LIST, DEVICE = range(9)


@pytest.fixture
def arena() -> Iterator[Arena]:
    memory = Memory()
    region = memory.add(0x10000, 1 << 16, "arguments")
    yield Arena(memory, region.start, region.size)
    memory.close()


def records(raw: bytes) -> list[tuple[Any, ...]]:
    return list(struct.iter_unpack("<qqdQ", raw))


def encoded(arena: Arena, value: Any, kind: str) -> list[tuple[Any, ...]]:
    def pointer(thing: Any) -> int | None:
        return 0xBEEF if isinstance(thing, bytearray) else None

    return records(encode(value, kind, arena, pointer))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, "Tensor?", (NONE, 0, 0.0, 0)),
        (bytearray(), "Tensor", (TENSOR, 0, 0.0, 0xBEEF)),
        (3, "SymInt", (INT, 3, 0.0, 0)),
        (-1, "int", (INT, -1, 0.0, 0)),
        (True, "bool", (BOOL, 1, 0.0, 0)),
        (2.5, "Scalar", (FLOAT, 0, 2.5, 0)),
        ("float16", "ScalarType?", (INT, 5, 0.0, 0)),
        ("torch.bfloat16", "ScalarType", (INT, 15, 0.0, 0)),
        ("channels_last", "MemoryFormat?", (INT, 2, 0.0, 0)),
        ("strided", "Layout?", (INT, 0, 0.0, 0)),
        ("cpu", "Device?", (DEVICE, 0, 0.0, 0)),
        ("mps:0", "Device?", (DEVICE, 13, 0.0, 0)),
        ("target", "Device?", (DEVICE, 13, 0.0, 0)),
        ("-inf", "float", (FLOAT, 0, float("-inf"), 0)),
    ],
)
def test_leaves(arena: Arena, value: Any, kind: str, expected: tuple[Any, ...]) -> None:
    assert encoded(arena, value, kind) == [expected]


def test_complex_numbers_keep_both_parts(arena: Arena) -> None:
    bits = struct.unpack("<q", struct.pack("<d", -2.0))[0]
    assert encoded(arena, 1 - 2j, "Scalar") == [(COMPLEX, bits, 1.0, 0)]
    assert encoded(arena, "(1-2j)", "number") == [(COMPLEX, bits, 1.0, 0)]


def test_lists_are_followed_by_their_elements(arena: Arena) -> None:
    found = encoded(arena, [bytearray(), None, bytearray()], "Tensor?[]")
    assert [record[0] for record in found] == [LIST, TENSOR, NONE, TENSOR]
    assert found[0][1] == 3
    assert [record[:2] for record in encoded(arena, [], "int[]")] == [(LIST, 0)]


def test_strings_are_copied(arena: Arena) -> None:
    ((kind, length, _, address),) = encoded(arena, "trünc", "str?")
    assert (kind, length) == (STRING, 6)
    assert arena.memory.text(address) == "trünc"


@pytest.mark.parametrize(("value", "kind"), [(object(), "int"), ("nonsense", "ScalarType")])
def test_what_no_argument_takes_is_refused(arena: Arena, value: Any, kind: str) -> None:
    with pytest.raises((TypeError, KeyError)):
        encoded(arena, value, kind)


def test_results_are_a_tree() -> None:
    raw = [
        (LIST, 2, 0.0, 0),
        (TENSOR, 0, 0.0, 0x10),
        (LIST, 1, 0.0, 0),
        (INT, -5, 0.0, 0),
        (BOOL, 1, 0.0, 0),
        (FLOAT, 0, 0.5, 0),
        (COMPLEX, struct.unpack("<q", struct.pack("<d", 4.0))[0], 3.0, 0),
        (NONE, 0, 0.0, 0),
    ]
    packed = b"".join(struct.pack("<qqdQ", *record) for record in raw)
    assert decode(packed, len(raw), hex) == [["0x10", [-5]], True, 0.5, 3 + 4j, None]


def test_item_sizes() -> None:
    expected = {"uint8": 1, "int64": 8, "float32": 4, "bool": 1, "bfloat16": 2, "complex64": 8}
    expected |= {"float8_e4m3fn": 1, "uint32": 4, "complex128": 16, "complex32": 4}
    assert {name: ITEM_SIZES[name] for name in expected} == expected


def test_an_arena_says_when_it_is_full(arena: Arena) -> None:
    first = arena.take(40)
    assert arena.take(1) == first + 48
    with pytest.raises(MemoryError):
        arena.take(1 << 20)
    arena.reset()
    assert arena.take(8) == first


def test_torch_tensors_keep_layout_and_storage() -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(20, dtype=torch.bfloat16)
    view = base.as_strided((3, 2), (1, 5), 4)
    kept = from_torch(view)
    assert (kept.dtype, kept.shape, kept.stride, kept.offset) == ("bfloat16", (3, 2), (1, 5), 4)
    assert len(kept.storage) == 40
    back = kept.torch()
    assert torch.equal(back, view)
    assert back.stride() == (1, 5)
    assert back.storage_offset() == 4


def test_conjugate_views_and_empty_tensors_survive() -> None:
    torch = pytest.importorskip("torch")
    view = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj()
    kept = from_torch(view)
    assert kept.conj
    assert torch.equal(kept.torch().resolve_conj(), view.resolve_conj())
    empty = HostTensor("float32", (0, 3), (3, 1), 0, b"")
    assert tuple(empty.torch().shape) == (0, 3)
