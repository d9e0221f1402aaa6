"""Blocks: closures that the compiler lays out, which are objects too.

A block is {isa, flags, reserved, invoke, descriptor, captured …}, its descriptor
{reserved, size, copy helper, dispose helper}, as the ABI of Clang's blocks has it.
"""

from __future__ import annotations

from collections.abc import Callable

from scanner.sim.machine.cpu import Cpu
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method

__all__ = ["Block", "copied"]

_HAS_HELPERS = 1 << 25
_IS_GLOBAL = 1 << 28


class Block(Object):
    """A block literal or a copy of one; what it captured stays in emulated memory."""

    name = "NSBlock"

    @method("copy")
    def copy(self, message: Message) -> Result:
        """A block that outlives the frame it was made in."""
        return copied(message.cpu, message.runtime.allocate, self.address)


def copied(cpu: Cpu, allocate: Callable[[int], int], block: int) -> int:
    """Address of a copy that shares nothing with the caller's frame.

    Captured C++ objects are copied by the block's own helper. Copies are never given back.
    """
    memory = cpu.memory
    flags = memory.u32(block + 8)
    if flags & _IS_GLOBAL:
        return block
    descriptor = memory.u64(block + 24)
    size = memory.u64(descriptor + 8)
    kept = allocate(size)
    memory.write(kept, memory.read(block, size))
    if flags & _HAS_HELPERS:
        cpu.call(memory.u64(descriptor + 16), [kept, block])
    return kept
