"""Values on their way into and out of emulated code."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scanner.c10 import DTYPES, LAYOUTS, MEMORY_FORMATS
from scanner.sim.machine.memory import Memory

__all__ = [
    "DTYPES",
    "DTYPE_NAMES",
    "Arena",
    "Argument",
    "HostTensor",
    "decode",
    "default",
    "encode",
    "from_torch",
]

DTYPE_NAMES = {code: name for name, code in DTYPES.items()}
ITEM_SIZES: dict[str, int] = {
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
    "bool": 1,
    "bfloat16": 2,
}
ITEM_SIZES |= {
    name: 1 if name.startswith("float8") else int(name.lstrip("uintfloa")) // 8
    for name in DTYPES
    if name not in ITEM_SIZES
}
_DEVICES = {"cpu": 0, "mps": 13, "target": 13}
_NAMED: Mapping[str, Mapping[str, int]] = {
    "ScalarType": DTYPES,
    "Layout": LAYOUTS,
    "MemoryFormat": MEMORY_FORMATS,
}
_VALUE = struct.Struct("<qqdQ")
NONE, TENSOR, INT, FLOAT, BOOL, COMPLEX, STRING, LIST, DEVICE, DEFAULT = range(10)


@dataclass(frozen=True)
class Argument:
    """One argument of a schema."""

    name: str
    type: str
    keyword_only: bool
    has_default: bool


@dataclass(frozen=True)
class HostTensor:
    """A tensor with its content, outside emulated code. Shapes and strides are in elements."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: bytes
    """The whole storage."""
    device: str = "mps"
    conj: bool = False
    neg: bool = False
    wrapped: bool = False
    """Stands for a Python number in type promotion."""

    def torch(self) -> Any:
        """A torch tensor on the CPU with the same dtype, shape, stride and offset."""
        import torch

        dtype = getattr(torch, self.dtype)
        flat = torch.frombuffer(bytearray(self.storage or b"\0" * 16), dtype=torch.uint8)
        usable = flat[: len(flat) // ITEM_SIZES[self.dtype] * ITEM_SIZES[self.dtype]]
        made = usable.view(dtype).as_strided(self.shape, self.stride, self.offset)
        made = made.conj() if self.conj else made
        return torch._neg_view(made) if self.neg else made


class Arena:
    """Memory for the arguments of one call."""

    def __init__(self, memory: Memory, start: int, size: int) -> None:
        self.memory = memory
        self._start = start
        self._end = start + size
        self._next = start

    def reset(self) -> None:
        """Everything is free again."""
        self._next = self._start

    def take(self, size: int) -> int:
        """Address of some bytes."""
        address = self._next
        self._next = (address + size + 15) & ~15
        if self._next > self._end:
            raise MemoryError("the arguments of a call are too long")
        return address

    def put(self, data: bytes) -> int:
        """Address of a copy of bytes."""
        address = self.take(len(data))
        self.memory.write(address, data)
        return address


def encode(value: Any, kind: str, arena: Arena, pointer: Callable[[Any], int | None]) -> bytes:
    """One value as a tree of records, in prefix order.

    `kind` is the schema's type as text; `pointer` gives the address of a tensor, None for
    anything else. Names (`float32`, `channels_last`, `cpu`) are understood where the type asks
    for them, also as torch objects.
    """
    address = pointer(value)
    if address is not None:
        return _VALUE.pack(TENSOR, 0, 0.0, address)
    if value is None:
        return _VALUE.pack(NONE, 0, 0.0, 0)
    base = kind.rstrip("?")
    if isinstance(value, list | tuple):
        inner = base.split("[")[0]
        items = b"".join(encode(item, inner, arena, pointer) for item in value)
        return _VALUE.pack(LIST, len(value), 0.0, 0) + items
    return _leaf(value, base.split("[")[0], arena)


def _leaf(value: Any, kind: str, arena: Arena) -> bytes:
    if isinstance(value, bool):
        return _VALUE.pack(BOOL, int(value), 0.0, 0)
    if isinstance(value, int):
        return _VALUE.pack(INT, _wrapped(value), 0.0, 0)
    if isinstance(value, float):
        return _VALUE.pack(FLOAT, 0, value, 0)
    if isinstance(value, complex):
        bits = struct.unpack("<q", struct.pack("<d", value.imag))[0]
        return _VALUE.pack(COMPLEX, bits, value.real, 0)
    text = str(value).removeprefix("torch.")
    if kind in _NAMED:
        return _VALUE.pack(INT, _NAMED[kind][text], 0.0, 0)
    if kind == "Device":
        return _VALUE.pack(DEVICE, _DEVICES[text.split(":")[0]], 0.0, 0)
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} cannot be an argument of type {kind}")
    if kind in ("number", "Scalar", "float"):
        return _leaf(_number(text), kind, arena)
    raw = text.encode()
    return _VALUE.pack(STRING, len(raw), 0.0, arena.put(raw + b"\0"))


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _number(text: str) -> float | complex:
    """Infinities, NaN and complex numbers are strings in saved records."""
    try:
        return float(text)
    except ValueError:
        return complex(text)


def default() -> bytes:
    """Asks for the schema's default."""
    return _VALUE.pack(DEFAULT, 0, 0.0, 0)


def decode(raw: bytes, count: int, tensor: Callable[[int], Any]) -> list[Any]:
    """Results of a call; `tensor` makes a handle of an address."""
    records = [_VALUE.unpack_from(raw, _VALUE.size * index) for index in range(count)]
    results: list[Any] = []
    at = 0
    while at < count:
        value, at = _decode(records, at, tensor)
        results.append(value)
    return results


def _decode(
    records: Sequence[tuple[int, int, float, int]], at: int, tensor: Callable[[int], Any]
) -> tuple[Any, int]:
    kind, integer, real, address = records[at]
    at += 1
    if kind == LIST:
        items = []
        for _ in range(integer):
            item, at = _decode(records, at, tensor)
            items.append(item)
        return items, at
    return _scalar(kind, integer, real, address, tensor), at


def _scalar(
    kind: int, integer: int, real: float, address: int, tensor: Callable[[int], Any]
) -> Any:
    if kind == TENSOR:
        return tensor(address)
    if kind == INT:
        return integer
    if kind == FLOAT:
        return real
    if kind == BOOL:
        return bool(integer)
    if kind == COMPLEX:
        return complex(real, struct.unpack("<d", struct.pack("<q", integer))[0])
    return None


def from_torch(tensor: Any, device: str = "mps") -> HostTensor:
    """Layout and whole storage of a torch tensor on the CPU."""
    storage = tensor.untyped_storage()
    return HostTensor(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        offset=int(tensor.storage_offset()),
        storage=ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b"",
        device=device,
        conj=bool(tensor.is_conj()),
        neg=bool(tensor.is_neg()),
    )
