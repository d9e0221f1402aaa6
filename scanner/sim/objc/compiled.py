"""Classes that a library defines itself. Their class methods are emulated code.

Layouts are those of Apple's published Objective-C runtime (`objc-runtime-new.h`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from scanner.sim.libraries import Loaded
from scanner.sim.machine.faults import Fault
from scanner.sim.machine.memory import Memory
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Class, Object, Result

__all__ = ["CompiledClass", "compiled_classes"]

_SEGMENTS = ("__DATA", "__DATA_CONST")
_LIST = "__objc_classlist"
_DATA_MASK = 0x00007FFFFFFFFFF8
_RELATIVE = 0x80000000
_ENTRY_SIZE = 0xFFFC


class CompiledClass(Class):
    """Answers class messages with the library's own code; it has no instances."""

    def __init__(self, name: str, methods: dict[str, int]) -> None:
        super().__init__(name, self._refuse, {})
        self._methods = methods

    def _refuse(self) -> Object:
        raise Fault(f"instances of the library's own class {self.name} are not imitated")

    def otherwise(self, message: Message) -> Result:
        """Runs the method with the registers that the message came with."""
        code = self._methods.get(message.selector)
        if code is None:
            raise message.missing(self.name)
        return message.cpu.call(code, [message.cpu.x(index) for index in range(8)])


def compiled_classes(
    memory: Memory, libraries: Iterable[Loaded]
) -> Iterator[tuple[int, CompiledClass]]:
    """(address, class) of every class that the libraries define."""
    for library in libraries:
        for segment in _SEGMENTS:
            start, size = library.section(segment, _LIST)
            for address in memory.words(start, size // 8) if size else ():
                yield address, _read(memory, address)


def _read(memory: Memory, address: int) -> CompiledClass:
    metaclass = memory.u64(address)
    name = memory.text(memory.u64(_constant_part(memory, address) + 24))
    methods = memory.u64(_constant_part(memory, metaclass) + 32)
    return CompiledClass(name, dict(_methods(memory, methods)) if methods else {})


def _constant_part(memory: Memory, address: int) -> int:
    """Address of a class's class_ro_t."""
    return memory.u64(address + 32) & _DATA_MASK


def _methods(memory: Memory, address: int) -> Iterator[tuple[str, int]]:
    """(selector, code) of a method list, whose entries may be relative to themselves."""
    flags, count = memory.u32(address), memory.u32(address + 4)
    for index in range(count):
        at = address + 8 + (flags & _ENTRY_SIZE) * index
        if flags & _RELATIVE:
            name, _, code = struct.unpack("<3i", memory.read(at, 12))
            yield memory.text(memory.u64(at + name)), at + 8 + code
        else:
            name, _, code = memory.words(at, 3)
            yield memory.text(name), code
