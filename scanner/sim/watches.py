"""What is seen from outside when certain functions of a release are entered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scanner.sim.machine.cpu import Cpu

__all__ = ["Watches"]

_PYTHON_CLASSES = {
    "N3c1011LinAlgErrorE": "LinAlgError",
    "N3c1016OutOfMemoryErrorE": "OutOfMemoryError",
    "N3c1016AcceleratorErrorE": "AcceleratorError",
}
"""C++ classes, as their type information names them, that Python sees as RuntimeErrors of its own.

Source: `torch/csrc/Exceptions.h`.
"""
_NOT_UNIQUE = 1 << 63
"""Apple's arm64 marks names in type information that other libraries may have too."""
_SIGN = 1 << 63


class Watches:
    """Exceptions thrown, operators handed to the CPU, sizes asked of the GPU's allocator.

    `symbols` may lack any of the functions, as snapshots of older formats do; then nothing is seen.
    """

    def __init__(self, cpu: Cpu, symbols: Mapping[str, int], fallback: Callable[[], None]) -> None:
        self._cpu = cpu
        self._size_of = symbols.get("mps_requested_size", 0)
        self._thrown = ""
        self._allocator = 0
        self._sizes: dict[int, int | None] = {}
        for name, seen in (
            ("mps_fallback", fallback),
            ("throw", self._on_throw),
            ("mps_allocate", self._on_allocate),
        ):
            if name in symbols:
                cpu.watch(symbols[name], seen)

    def begin(self) -> None:
        """A call begins."""
        self._thrown = ""

    def restart(self) -> None:
        """The process begins anew."""
        self.begin()
        self._allocator = 0
        self._sizes.clear()

    def python_class(self, kind: str) -> str:
        """The class that Python sees of an exception that was caught as `kind`."""
        return _PYTHON_CLASSES.get(self._thrown, kind) if kind == "RuntimeError" else kind

    def requested(self, buffer: int) -> int | None:
        """Bytes that were asked for when a buffer object was allocated; None if unknown."""
        if not self._allocator or not self._size_of:
            return None
        if buffer not in self._sizes:
            size = self._cpu.call(self._size_of, [self._allocator, buffer])
            self._sizes[buffer] = None if size & _SIGN else size
        return self._sizes[buffer]

    def _on_allocate(self) -> None:
        self._allocator = self._cpu.x(0)
        self._sizes.clear()

    def _on_throw(self) -> None:
        memory = self._cpu.memory
        self._thrown = memory.text(memory.u64(self._cpu.x(1) + 8) & ~_NOT_UNIQUE)
