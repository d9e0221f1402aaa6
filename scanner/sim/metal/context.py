"""What all Metal objects of one process share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scanner.sim.gpu import Gpu
from scanner.sim.libraries import BundledLibrary
from scanner.sim.machine.cpu import Cpu
from scanner.sim.machine.faults import Fault
from scanner.sim.metal.recorder import Recorder
from scanner.sim.metal.storage import DeviceMemory, MTLBuffer
from scanner.sim.objc.methods import Object
from scanner.sim.objc.runtime import Runtime

__all__ = ["Context"]


@dataclass
class Context:
    """Services for Metal objects."""

    cpu: Cpu
    runtime: Runtime
    recorder: Recorder
    memory: DeviceMemory
    gpu: Gpu
    macos: tuple[int, int]
    libraries: tuple[BundledLibrary, ...]
    requested: Callable[[int], int | None] = lambda buffer: None
    """Bytes that were asked for when a buffer object was allocated; None where unknown."""

    def take(self, size: int) -> int:
        """Address of device memory; Fault beyond what the simulator allows.

        A release checks the device's limits by itself, so that this is never its own error.
        """
        address = self.memory.allocate(size)
        if not address:
            raise Fault(f"{size} bytes of device memory are more than the simulator allows")
        return address

    def buffer(self, size: int) -> MTLBuffer:
        """A buffer of its own."""
        address = self.take(size)
        self.recorder.allocate(size)
        return MTLBuffer(address, size, self._give_back)

    def slack(self, buffer: MTLBuffer) -> int:
        """Bytes at a buffer's end that nobody asked for."""
        asked = self.requested(buffer.address)
        return 0 if asked is None else max(buffer.size - asked, 0)

    def scratch(self, data: bytes) -> int:
        """Address of a copy of argument bytes; not traced as an allocation."""
        address = self.take(max(len(data), 16))
        self.cpu.memory.write(address, data)
        self._scratch.append((address, max(len(data), 16)))
        return address

    def __post_init__(self) -> None:
        self.device: Object | None = None
        """The only GPU, once it is known."""
        self._scratch: list[tuple[int, int]] = []

    def forget_scratch(self) -> None:
        """Gives argument bytes back, once nothing runs that was given them."""
        for address, size in self._scratch:
            self.memory.free(address, size)
        self._scratch.clear()

    def room(self, address: int) -> int:
        """Bytes that may be touched from an address on."""
        return self.cpu.memory.room(address)

    def _give_back(self, buffer: MTLBuffer) -> None:
        self.memory.free(buffer.contents_at, buffer.size)
        self.recorder.free(buffer.size)
