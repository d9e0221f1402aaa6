"""Addresses for what libraries import and no library defines.

A function gets a slot in the stub region, data gets zeroed memory. The tables are part of a
snapshot: pointers to both are stored all over it.
"""

from __future__ import annotations

from scanner.sim.machine.faults import Fault
from scanner.sim.machine.memory import Memory, Region

__all__ = ["Imports"]

_SLOT = 16
_DATA = 512
_DATA_SIZES = {"__DefaultRuneLocale": 4096}
_RETURN = b"\xc0\x03\x5f\xd6"
_ALIGN = 64
_DATA_PREFIXES = ("__ZTV", "__ZTI", "__ZTS", "_OBJC_CLASS_$_", "_OBJC_METACLASS_$_", "_k")
_DATA_NAMES = frozenset(
    {
        "_MTLCommandBufferErrorDomain",
        "_MTLLibraryErrorDomain",
        "__DefaultRuneLocale",
        "__NSConcreteGlobalBlock",
        "__NSConcreteStackBlock",
        "__dispatch_main_q",
        "___CFConstantStringClassReference",
        "___NSArray0__struct",
        "___NSDictionary0__struct",
        "___stack_chk_guard",
        "___stderrp",
        "___stdoutp",
        "___stdinp",
        "_environ",
        "_in6addr_any",
        "_mach_task_self_",
        "_vm_page_size",
    }
)
_THREAD_GETTER = bytes.fromhex("100440f9000840f90000108bc0035fd6")
"""ldr x16,[x0,8]; ldr x0,[x0,16]; add x0,x0,x16; ret: may change no other register."""


class Imports:
    """Slots and data by name."""

    def __init__(self, memory: Memory, stubs: Region, data: Region) -> None:
        self.functions: dict[str, int] = {}
        self.data: dict[str, int] = {}
        self._memory = memory
        self._stubs = stubs
        self._area = data
        self._next = data.start + _ALIGN
        memory.write(stubs.start, _RETURN * (stubs.size // len(_RETURN)))

    @property
    def used(self) -> int:
        """Bytes of the data region in use."""
        return self._next - self._area.start

    def restore(self, functions: dict[str, int], data: dict[str, int], used: int) -> None:
        """Takes the tables of a snapshot."""
        self.functions = dict(functions)
        self.data = dict(data)
        self._next = self._area.start + used

    def resolve(self, symbol: str) -> int:
        """Address of a symbol, new or known."""
        if symbol in _DATA_NAMES or symbol.startswith(_DATA_PREFIXES):
            if symbol not in self.data:
                self.data[symbol] = self.allocate(_DATA_SIZES.get(symbol, _DATA))
            return self.data[symbol]
        if symbol not in self.functions:
            # The last slots are kept for the CPU's own use.
            address = self._stubs.start + _SLOT * (len(self.functions) + 1)
            if address >= self._stubs.end - 2 * _SLOT:
                raise Fault("too many imported functions")
            self.functions[symbol] = address
        return self.functions[symbol]

    def allocate(self, size: int) -> int:
        """Memory that is never freed."""
        address = self._next
        self._next = (address + size + _ALIGN - 1) // _ALIGN * _ALIGN
        if self._next > self._area.end:
            raise Fault("the area for data of imports is exhausted")
        return address

    def thread_block(self, content: bytes, size: int) -> int:
        """Memory for one library's thread-local variables."""
        address = self.allocate(max(size, len(content)))
        self._memory.write(address, content)
        return address

    def thread_getter(self) -> int:
        """Code that finds a thread-local variable from its descriptor."""
        address = self.allocate(len(_THREAD_GETTER))
        self._memory.write(address, _THREAD_GETTER)
        return address
