"""MTLDevice, libraries, functions and pipelines."""

from __future__ import annotations

import struct
from typing import Any

from scanner.sim.executors import KernelSource
from scanner.sim.metal.bags import Bag
from scanner.sim.metal.commands import CommandQueue, SharedEvent
from scanner.sim.metal.context import BundledLibrary, Context
from scanner.sim.metal.storage import MTLBuffer, MTLHeap
from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method

__all__ = ["DispatchData", "FunctionConstants", "MTLDevice"]

_CONSTANT_TYPES: dict[int, tuple[str, str]] = {
    3: ("float", "<f"),
    16: ("half", "<e"),
    29: ("int", "<i"),
    33: ("uint", "<I"),
    37: ("short", "<h"),
    41: ("ushort", "<H"),
    45: ("char", "<b"),
    49: ("uchar", "<B"),
    53: ("bool", "<?"),
    81: ("long", "<q"),
    85: ("ulong", "<Q"),
}
"""MTLDataType → Metal type and layout."""


class DispatchData(Object):
    """Bytes given to libdispatch: an address and a size."""

    name = "dispatch_data"

    def __init__(self, start: int, size: int) -> None:
        super().__init__()
        self.start = start
        self.size = size


class FunctionConstants(Object):
    """MTLFunctionConstantValues."""

    name = "MTLFunctionConstantValues"

    def __init__(self) -> None:
        super().__init__()
        self.constants: dict[int, tuple[str, Any]] = {}

    @method("setConstantValue:type:atIndex:")
    def put(self, message: Message) -> Result:
        """One constant."""
        address, kind, index = (message.word(place) for place in range(3))
        name, layout = _CONSTANT_TYPES[kind]
        raw = message.cpu.memory.read(address, struct.calcsize(layout))
        self.constants[index] = (name, struct.unpack(layout, raw)[0])


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
        """Nothing but this process uses the GPU."""
        return 0

    @method("heapBufferSizeAndAlignWithLength:options:")
    def size_and_align(self, message: Message) -> Result:
        """MTLSizeAndAlign."""
        return (message.word(0), 256)

    @method("newHeapWithDescriptor:")
    def heap(self, message: Message) -> Result:
        """A heap of the descriptor's size, nil when the memory is exhausted."""
        size = int(message.object(0).properties.get("size", 0))
        start = self._context.memory.allocate(size)
        if not start:
            return None
        return MTLHeap(start, size, self._context.recorder, self._context.memory)

    @method("newBufferWithLength:options:")
    def buffer(self, message: Message) -> Result:
        """A buffer of its own."""
        return self._context.buffer(message.word(0))

    @method("newBufferWithBytes:length:options:")
    def buffer_with_bytes(self, message: Message) -> Result:
        """A buffer with a copy of memory."""
        made = self._context.buffer(message.word(1))
        if made is not None:
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


class MTLLibrary(Object):
    """A bundled library, or a source text."""

    name = "MTLLibrary"

    def __init__(
        self, context: Context, bundled: BundledLibrary | None = None, source: str | None = None
    ) -> None:
        super().__init__()
        self._context = context
        self._bundled = bundled
        self._source = source

    def _function(self, name: str, constants: FunctionConstants | None) -> MTLFunction | None:
        if self._bundled is not None and name not in self._bundled.kernels:
            return None
        given = sorted(constants.constants.items()) if constants is not None else []
        library = self._bundled.name if self._bundled is not None else ""
        values = tuple((index, *value) for index, value in given)
        return MTLFunction(self._context, KernelSource(name, library, self._source, values))

    @method("newFunctionWithName:")
    def function(self, message: Message) -> Result:
        """A function by name, nil when the library has none of it."""
        return self._function(message.text(0), None)

    @method("newFunctionWithName:constantValues:error:")
    def specialised(self, message: Message) -> Result:
        """A function with its constants."""
        return self._function(message.text(0), message.object(1))

    @method("functionNames")
    def names(self, message: Message) -> Result:
        """All functions of a bundled library."""
        names = sorted(self._bundled.kernels) if self._bundled else []
        return NSArray([message.runtime.string(name).address for name in names])

    @method("device")
    def device(self, message: Message) -> Result:
        """The GPU."""
        return self._context.device

    @method("setLabel:")
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


class MTLFunction(Object):
    """A function of a library."""

    name = "MTLFunction"

    def __init__(self, context: Context, kernel: KernelSource) -> None:
        super().__init__()
        self._context = context
        self.kernel = kernel

    @method("name")
    def title(self, message: Message) -> Result:
        """The function's name."""
        return message.runtime.string(self.kernel.name)

    @method("newArgumentEncoderWithBufferIndex:")
    def argument_encoder(self, message: Message) -> Result:
        """An encoder for a buffer of buffer addresses."""
        return ArgumentEncoder()


class ArgumentEncoder(Object):
    """Writes buffer addresses into a buffer, eight bytes each."""

    name = "MTLArgumentEncoder"
    _SLOTS = 128

    def __init__(self) -> None:
        super().__init__()
        self._at = 0

    @method("encodedLength")
    def length(self, message: Message) -> Result:
        """Bytes of the largest argument buffer."""
        return 8 * self._SLOTS

    @method("setArgumentBuffer:offset:")
    def target(self, message: Message) -> Result:
        """Where to write."""
        self._at = message.object(0).contents_at + message.word(1)

    @method("setBuffer:offset:atIndex:")
    def put(self, message: Message) -> Result:
        """One buffer."""
        buffer = message.object(0)
        address = buffer.contents_at + message.word(1) if buffer is not None else 0
        message.cpu.memory.set_u64(self._at + 8 * message.word(2), address)


class Pipeline(Object):
    """A function ready to run."""

    name = "MTLComputePipelineState"

    def __init__(self, context: Context, kernel: KernelSource) -> None:
        super().__init__()
        self._context = context
        self.kernel = kernel
        self._limits = context.recorder.limits(kernel)

    @method("maxTotalThreadsPerThreadgroup")
    def max_threads(self, message: Message) -> Result:
        """The kernel's own limit, or the GPU's."""
        return min(self._limits.max_threads or 1 << 30, self._context.gpu.max_threads)

    @method("threadExecutionWidth")
    def width(self, message: Message) -> Result:
        """Threads of a simdgroup."""
        return self._context.gpu.simd_width

    @method("staticThreadgroupMemoryLength")
    def static_memory(self, message: Message) -> Result:
        """Bytes of threadgroup memory that the kernel declares."""
        return self._limits.static_memory


def descriptors() -> tuple[type[Bag], ...]:
    """Property bags of Metal itself."""
    names = ("MTLHeapDescriptor", "MTLCompileOptions", "MTLCaptureDescriptor")
    return tuple(type(name, (Bag,), {"name": name}) for name in names)
