"""GPU memory: heaps and buffers in one region whose addresses are also host addresses."""

from __future__ import annotations

from collections.abc import Callable

from scanner.sim.graph.recording import TensorData
from scanner.sim.machine.memory import Region
from scanner.sim.metal.recorder import Recorder
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method

__all__ = ["DeviceMemory", "MTLBuffer", "MTLHeap", "heap_region"]

_GRAIN = 256


def _round(size: int) -> int:
    return max(size + _GRAIN - 1, _GRAIN) // _GRAIN * _GRAIN


class DeviceMemory:
    """First-fit allocation in a range of addresses.

    Holes are merged, so that freeing everything leaves one hole.
    """

    def __init__(self, start: int, size: int) -> None:
        self._holes: list[tuple[int, int]] = [(start, size)]
        self.start = start
        self.in_use = 0
        """Bytes that are taken."""

    def allocate(self, size: int) -> int:
        """Address of `size` bytes, 0 when there is no hole large enough."""
        size = _round(size)
        for index, (start, room) in enumerate(self._holes):
            if room >= size:
                self._holes[index : index + 1] = (
                    [(start + size, room - size)] if room > size else []
                )
                self.in_use += size
                return start
        return 0

    def free(self, address: int, size: int) -> None:
        """Gives a range back."""
        size = _round(size)
        self.in_use -= size
        holes = sorted([*self._holes, (address, size)])
        merged = [holes[0]]
        for start, room in holes[1:]:
            last, length = merged[-1]
            if last + length == start:
                merged[-1] = (last, length + room)
            else:
                merged.append((start, room))
        self._holes = merged

    def largest(self) -> int:
        """Size of the largest hole."""
        return max((room for _, room in self._holes), default=0)


class MTLBuffer(Object):
    """Memory that kernels can be given."""

    name = "MTLBuffer"

    def __init__(
        self, contents: int, size: int, release: Callable[[MTLBuffer], None] | None = None
    ) -> None:
        super().__init__()
        self.contents_at = contents
        self.size = size
        self._release = release

    def deallocate(self) -> None:
        """Gives the memory back."""
        if self._release is not None:
            self._release(self)

    def value(self) -> TensorData:
        """The recording's form: bytes, at the address that this process knows too."""
        return TensorData(self.contents_at, self.size, (self.size,), "uint8")

    @method("contents", "gpuAddress")
    def contents(self, message: Message) -> Result:
        """Address for the CPU and for the GPU."""
        return self.contents_at

    @method("length", "allocatedSize")
    def length(self, message: Message) -> Result:
        """Size in bytes."""
        return self.size

    @method("storageMode", "cpuCacheMode", "hazardTrackingMode", "resourceOptions")
    def shared(self, message: Message) -> Result:
        """Shared, default cache, default tracking: all zero."""
        return 0

    @method("setPurgeableState:")
    def purgeable(self, message: Message) -> Result:
        """MTLPurgeableStateNonVolatile."""
        return 2

    @method("setLabel:", "didModifyRange:", "addDebugMarker:range:")
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


class MTLHeap(Object):
    """A block of memory that buffers are cut from."""

    name = "MTLHeap"

    def __init__(self, start: int, size: int, recorder: Recorder, parent: DeviceMemory) -> None:
        super().__init__()
        self.capacity = size
        self.used = 0
        self._memory = DeviceMemory(start, size)
        self._recorder = recorder
        self._parent = parent

    def deallocate(self) -> None:
        """Gives the whole block back."""
        self._parent.free(self._memory.start, self.capacity)

    def _make(self, address: int, size: int) -> MTLBuffer:
        self.used += size
        self._recorder.allocate(size)
        return MTLBuffer(address, size, self._give_back)

    def _give_back(self, buffer: MTLBuffer) -> None:
        self._memory.free(buffer.contents_at, buffer.size)
        self.used -= buffer.size
        self._recorder.free(buffer.size)

    @method("newBufferWithLength:options:")
    def buffer(self, message: Message) -> Result:
        """A buffer anywhere in the heap, nil without room."""
        size = message.word(0)
        address = self._memory.allocate(size)
        return self._make(address, size) if address else None

    @method("newBufferWithLength:options:offset:")
    def buffer_at(self, message: Message) -> Result:
        """A buffer at a place; in a placement heap they may overlap."""
        size = message.word(0)
        address = self._memory.start + message.word(2)
        self.used += size
        self._recorder.allocate(size)
        return MTLBuffer(address, size, lambda buffer: self._recorder.free(buffer.size))

    @method("maxAvailableSizeWithAlignment:")
    def available(self, message: Message) -> Result:
        """Largest buffer that fits."""
        return self._memory.largest()

    @method("size", "currentAllocatedSize")
    def size(self, message: Message) -> Result:
        """Size of the heap."""
        return self.capacity

    @method("usedSize")
    def used_size(self, message: Message) -> Result:
        """Bytes in buffers."""
        return self.used

    @method("setPurgeableState:")
    def purgeable(self, message: Message) -> Result:
        """MTLPurgeableStateNonVolatile."""
        return 2

    @method("setLabel:", "storageMode")
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


def heap_region(region: Region) -> DeviceMemory:
    """An allocator over a whole region; address 0 of it is never given out."""
    return DeviceMemory(region.start + _GRAIN, region.size - _GRAIN)
