"""One message: who gets it, and how to read its arguments."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scanner.sim.machine.cpu import Cpu
from scanner.sim.machine.faults import MissingSelector

if TYPE_CHECKING:
    from scanner.sim.objc.runtime import Runtime

__all__ = ["Message"]

_REGISTERS = 6
_SIGN = 1 << 63
_SIZES = {"word": 8, "bool": 1, "u32": 4, "double": 8, "float": 4}


class Message:
    """Arguments are counted from 0 after the receiver and the selector.

    Integer and pointer arguments come in x2–x7 and then on the stack; floating ones in d0–d7,
    counted on their own (Apple's arm64 calling convention).
    """

    def __init__(self, cpu: Cpu, runtime: Runtime, selector: str) -> None:
        self.cpu = cpu
        self.runtime = runtime
        self.selector = selector

    @property
    def receiver(self) -> int:
        """Address of the object that gets the message."""
        return self.cpu.x(0)

    def word(self, index: int) -> int:
        """An integer or pointer; on the stack each takes eight bytes."""
        if index < _REGISTERS:
            return self.cpu.x(2 + index)
        return self.cpu.memory.u64(self.cpu.sp + 8 * (index - _REGISTERS))

    def signed(self, index: int) -> int:
        """An NSInteger."""
        word = self.word(index)
        return word - (1 << 64) if word & _SIGN else word

    def flag(self, index: int) -> bool:
        """A BOOL."""
        return bool(self.word(index) & 1)

    def object(self, index: int) -> Any:
        """The object at an argument, None for nil."""
        return self.runtime.find(self.word(index))

    def text(self, index: int) -> str:
        """Text of an NSString argument."""
        return self.runtime.text(self.word(index))

    def triple(self, index: int) -> tuple[int, int, int]:
        """An MTLSize: three words behind a pointer."""
        first, second, third = self.cpu.memory.words(self.word(index), 3)
        return first, second, third

    def decode(self, kinds: Sequence[str]) -> list[int | float]:
        """All arguments by kind: `word`, `bool`, `u32`, `double` or `float`.

        Stack arguments are packed by their natural alignment.
        """
        found: list[int | float] = []
        integers = floats = 0
        stack = self.cpu.sp
        for kind in kinds:
            if kind in ("double", "float"):
                found.append(self.cpu.d(floats) if kind == "double" else self.cpu.s(floats))
                floats += 1
            elif integers < _REGISTERS:
                found.append(_cut(self.cpu.x(2 + integers), kind))
                integers += 1
            else:
                size = _SIZES[kind]
                stack = (stack + size - 1) // size * size
                raw = self.cpu.memory.read(stack, size)
                found.append(_cut(int.from_bytes(raw, "little"), kind))
                stack += size
        return found

    def missing(self, receiver: str) -> MissingSelector:
        """The fault for a message that nobody answers."""
        return MissingSelector(receiver, self.selector)

    def double_bits(self, index: int) -> bytes:
        """Raw content of a double argument."""
        return struct.pack("<d", self.cpu.d(index))


def _cut(word: int, kind: str) -> int:
    return word & {"word": 0xFFFFFFFFFFFFFFFF, "bool": 1, "u32": 0xFFFFFFFF}[kind]
