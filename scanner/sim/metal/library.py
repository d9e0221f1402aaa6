"""Metal libraries, functions and pipelines."""

from __future__ import annotations

import struct
from typing import Any

from scanner.sim.executors import KernelSource
from scanner.sim.libraries import BundledLibrary
from scanner.sim.metal.context import Context
from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method

__all__ = ["FunctionConstants", "MTLLibrary", "Pipeline"]

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
