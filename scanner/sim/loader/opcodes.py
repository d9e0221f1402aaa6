"""Rebase and bind opcode streams of libraries without chained fixups.

Opcode values are from Apple's `<mach-o/loader.h>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Bind", "Rebase", "binds", "rebases"]

_POINTER = 8
_MASK = 0xFFFFFFFFFFFFFFFF


class Rebase(NamedTuple):
    """`number` pointers, `stride` bytes apart, that hold library-relative addresses."""

    address: int
    number: int
    stride: int


class Bind(NamedTuple):
    """A pointer that is to hold a symbol's address plus an addend."""

    address: int
    symbol: str
    addend: int


class _Stream:
    """Bytes with a position."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def opcode(self) -> tuple[int, int]:
        byte = self.data[self.at]
        self.at += 1
        return byte & 0xF0, byte & 0x0F

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if self.data[self.at - 1] & 0x40 else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode()
        self.at = end + 1
        return found


def rebases(data: bytes, segments: Sequence[int]) -> list[Rebase]:
    """Interprets a rebase stream; `segments` are library-relative segment addresses."""
    stream = _Stream(data)
    found: list[Rebase] = []
    address = 0
    while stream:
        opcode, immediate = stream.opcode()
        if opcode == 0x00:
            break
        if opcode == 0x20:
            address = segments[immediate] + stream.unsigned()
        elif opcode == 0x30:
            address = (address + stream.unsigned()) & _MASK
        elif opcode == 0x40:
            address += immediate * _POINTER
        elif opcode >= 0x50:
            run = _rebase_run(stream, opcode, immediate, address)
            found.append(run)
            address += run.number * run.stride
    return found


def _rebase_run(stream: _Stream, opcode: int, immediate: int, address: int) -> Rebase:
    if opcode == 0x50:
        return Rebase(address, immediate, _POINTER)
    if opcode == 0x60:
        return Rebase(address, stream.unsigned(), _POINTER)
    if opcode == 0x70:
        return Rebase(address, 1, _POINTER + stream.unsigned())
    if opcode == 0x80:
        count = stream.unsigned()
        return Rebase(address, count, _POINTER + stream.unsigned())
    raise ValueError(f"unknown rebase opcode {opcode:#x}")


def binds(data: bytes, segments: Sequence[int], *, lazy: bool = False) -> list[Bind]:
    """Interprets a bind stream. In a lazy one, DONE ends an entry, not the stream."""
    stream = _Stream(data)
    found: list[Bind] = []
    address = addend = 0
    symbol = ""
    while stream:
        opcode, immediate = stream.opcode()
        if opcode == 0x00:
            if not lazy:
                break
        elif opcode == 0x20:
            stream.unsigned()
        elif opcode == 0x40:
            symbol = stream.text()
        elif opcode == 0x60:
            addend = stream.signed()
        elif opcode == 0x70:
            address = segments[immediate] + stream.unsigned()
        elif opcode == 0x80:
            address = (address + stream.unsigned()) & _MASK
        elif opcode >= 0x90:
            count, step = _bind_run(stream, opcode, immediate)
            for _ in range(count):
                found.append(Bind(address, symbol, addend))
                address = (address + step) & _MASK
    return found


def _bind_run(stream: _Stream, opcode: int, immediate: int) -> tuple[int, int]:
    if opcode == 0x90:
        return 1, _POINTER
    if opcode == 0xA0:
        return 1, _POINTER + stream.unsigned()
    if opcode == 0xB0:
        return 1, _POINTER + immediate * _POINTER
    if opcode == 0xC0:
        count = stream.unsigned()
        return count, _POINTER + stream.unsigned()
    raise ValueError(f"unknown bind opcode {opcode:#x}")
