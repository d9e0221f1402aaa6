"""MTLDevice, libraries, functions and pipelines."""

from __future__ import annotations

from scanner.sim.metal.commands import CommandQueue, SharedEvent
from scanner.sim.metal.context import Context
from scanner.sim.metal.library import MTLLibrary, Pipeline
from scanner.sim.metal.storage import MTLBuffer, MTLHeap
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method

__all__ = ["DispatchData", "MTLDevice"]


class DispatchData(Object):
    """Bytes given to libdispatch: an address and a size."""

    name = "dispatch_data"

    def __init__(self, start: int, size: int) -> None:
        super().__init__()
        self.start = start
        self.size = size


class MTLDevice(Object):
    """The GPU."""

    name = "MTLDevice"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context

    @method("name")
    def title(self, message: Message) -> Result:
        """`Apple M2`."""
        return message.runtime.string(self._context.gpu.name)

    @method("isLowPower", "isRemovable", "isHeadless")
    def no(self, message: Message) -> Result:
        """Never on Apple silicon."""
        return False

    @method("hasUnifiedMemory")
    def yes(self, message: Message) -> Result:
        """Always on Apple silicon."""
        return True

    @method("supportsFamily:")
    def supports(self, message: Message) -> Result:
        """Whether the GPU belongs to a family."""
        return self._context.gpu.supports(message.word(0), self._context.macos[0])

    @method("recommendedMaxWorkingSetSize")
    def working_set(self, message: Message) -> Result:
        """Bytes."""
        return self._context.gpu.working_set

    @method("maxBufferLength")
    def max_buffer(self, message: Message) -> Result:
        """Bytes."""
        return self._context.gpu.max_buffer

    @method("maxThreadgroupMemoryLength")
    def threadgroup_memory(self, message: Message) -> Result:
        """Bytes."""
        return self._context.gpu.threadgroup_memory

    @method("currentAllocatedSize")
    def allocated(self, message: Message) -> Result:
        """Heaps and buffers of this process; nobody else uses the GPU."""
        return self._context.memory.in_use

    @method("heapBufferSizeAndAlignWithLength:options:")
    def size_and_align(self, message: Message) -> Result:
        """MTLSizeAndAlign."""
        return (message.word(0), 256)

    @method("newHeapWithDescriptor:")
    def heap(self, message: Message) -> Result:
        """A heap of the descriptor's size."""
        size = int(message.object(0).properties.get("size", 0))
        start = self._context.take(size)
        return MTLHeap(start, size, self._context.recorder, self._context.memory)

    @method("newBufferWithLength:options:")
    def buffer(self, message: Message) -> Result:
        """A buffer of its own."""
        return self._context.buffer(message.word(0))

    @method("newBufferWithBytes:length:options:")
    def buffer_with_bytes(self, message: Message) -> Result:
        """A buffer with a copy of memory."""
        made = self._context.buffer(message.word(1))
        memory = message.cpu.memory
        memory.write(made.contents_at, memory.read(message.word(0), message.word(1)))
        return made

    @method("newBufferWithBytesNoCopy:length:options:deallocator:")
    def buffer_over_bytes(self, message: Message) -> Result:
        """A buffer over memory of the process."""
        return MTLBuffer(message.word(0), message.word(1))

    @method("newCommandQueue", "newCommandQueueWithMaxCommandBufferCount:")
    def queue(self, message: Message) -> Result:
        """A queue."""
        return CommandQueue(self._context)

    @method("newSharedEvent", "newEvent")
    def event(self, message: Message) -> Result:
        """An event."""
        return SharedEvent(self._context)

    @method("newLibraryWithData:error:")
    def bundled(self, message: Message) -> Result:
        """The compiled library that some bytes are."""
        data = message.object(0)
        for library in self._context.libraries:
            if isinstance(data, DispatchData) and data.start == library.start:
                return MTLLibrary(self._context, bundled=library)
        raise message.missing("MTLDevice")

    @method("newLibraryWithSource:options:error:")
    def compiled(self, message: Message) -> Result:
        """A library from source text; what it defines is not known here."""
        return MTLLibrary(self._context, source=message.text(0))

    @method("newComputePipelineStateWithFunction:error:")
    def pipeline(self, message: Message) -> Result:
        """A pipeline for a function."""
        return Pipeline(self._context, message.object(0).kernel)
