"""GPUs that can be simulated."""

from __future__ import annotations

import msgspec

__all__ = ["CHIPS", "Gpu", "chip"]

_GIB = 1 << 30
_APPLE_FAMILY = 1000
_COMMON_FAMILIES = {3001: 1, 3002: 1, 3003: 1, 2002: 1, 5001: 1}
_METAL4 = 5002
_FIRST_METAL4_FAMILY = 7
_FIRST_METAL4_MACOS = 26


class Gpu(msgspec.Struct, frozen=True):
    """Properties that host code asks of the GPU and that may change what it launches."""

    name: str = "Apple M2"
    family: int = 8
    """Apple GPU family: 7 for M1, 8 for M2, 9 for M3 and M4, 10 for M5."""
    cores: int = 10
    memory: int = 16 * _GIB
    """Unified memory in bytes; the GPU may use three quarters of it."""
    max_threads: int = 1024
    """Threads in a threadgroup, unless the kernel sets a smaller number."""
    simd_width: int = 32
    threadgroup_memory: int = 32768

    @property
    def working_set(self) -> int:
        """`recommendedMaxWorkingSetSize`."""
        return self.memory * 3 // 4

    @property
    def max_buffer(self) -> int:
        """`maxBufferLength`."""
        return self.memory * 9 // 16

    def supports(self, family: int, macos: int) -> bool:
        """`supportsFamily:` for a number of MTLGPUFamily."""
        if family == _METAL4:
            return self.family >= _FIRST_METAL4_FAMILY and macos >= _FIRST_METAL4_MACOS
        if _APPLE_FAMILY < family < 2 * _APPLE_FAMILY:
            return family - _APPLE_FAMILY <= self.family
        return family in _COMMON_FAMILIES


CHIPS = {
    "M1": Gpu("Apple M1", 7, 8),
    "M2": Gpu("Apple M2", 8, 10),
    "M3": Gpu("Apple M3", 9, 10),
    "M4": Gpu("Apple M4", 9, 10),
    "M5": Gpu("Apple M5", 10, 10),
}
"""Base chips with 16 GiB; core counts from Apple's specification pages."""


def chip(name: str, memory: int | None = None) -> Gpu:
    """A chip by name (`M2`), with `memory` GiB; KeyError for an unknown one."""
    base = CHIPS[name.split()[0].upper()]
    return base if memory is None else msgspec.structs.replace(base, memory=memory * _GIB)
