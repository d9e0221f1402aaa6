"""Command queues, command buffers and encoders. What is encoded is done at once."""

from __future__ import annotations

from scanner.sim.executors import Launch
from scanner.sim.metal.context import Context
from scanner.sim.objc.blocks import copied
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Class, Object, Result, class_method, method
from scanner.sim.trace import Binding

__all__ = ["CommandBuffer", "CommandQueue", "ComputeEncoder", "SharedEvent"]

_COMPLETED = 4
_BLOCK_INVOKE = 16


def run_block(message: Message, block: int, arguments: list[int]) -> None:
    """Calls a block: {isa, flags, invoke, …}."""
    if block:
        invoke = message.cpu.memory.u64(block + _BLOCK_INVOKE)
        message.cpu.call(invoke, [block, *arguments])


class CommandQueue(Object):
    """Makes command buffers."""

    name = "MTLCommandQueue"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    @method(
        "commandBuffer", "commandBufferWithUnretainedReferences", "commandBufferWithDescriptor:"
    )
    def command_buffer(self, message: Message) -> Result:
        """A new command buffer."""
        return CommandBuffer(self.context)

    @method("device")
    def device(self, message: Message) -> Result:
        """The GPU."""
        return self.context.device

    @method("setLabel:")
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


class CommandBuffer(Object):
    """A command buffer, also as MPSCommandBuffer."""

    name = "MPSCommandBuffer"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._handlers: list[int] = []

    @class_method("commandBufferFromCommandQueue:", "commandBufferWithCommandBuffer:")
    @staticmethod
    def from_queue(_kind: Class, message: Message) -> Result:
        """A new command buffer of a queue."""
        return CommandBuffer(message.object(0).context)

    @method("computeCommandEncoder", "computeCommandEncoderWithDispatchType:")
    def compute(self, message: Message) -> Result:
        """An encoder for kernels."""
        return ComputeEncoder(self._context)

    @method("blitCommandEncoder")
    def blit(self, message: Message) -> Result:
        """An encoder for copies."""
        return BlitEncoder(self._context)

    @method("commit", "commitAndContinue")
    def commit(self, message: Message) -> Result:
        """Everything was done already; only the handlers are left."""
        self._context.recorder.commit()
        handlers, self._handlers = self._handlers, []
        for block in handlers:
            run_block(message, block, [self.address])

    @method("waitUntilCompleted", "waitUntilScheduled")
    def wait(self, message: Message) -> Result:
        """The CPU waits for the GPU."""
        if message.selector == "waitUntilCompleted":
            self._context.recorder.wait()

    @method("addCompletedHandler:", "addScheduledHandler:")
    def handler(self, message: Message) -> Result:
        """A block to call later."""
        self._handlers.append(copied(message.cpu, message.runtime.allocate, message.word(0)))

    @method("status")
    def status(self, message: Message) -> Result:
        """MTLCommandBufferStatusCompleted."""
        return _COMPLETED

    @method("error", "rootCommandBuffer", "commandBuffer")
    def none(self, message: Message) -> Result:
        """No error; the buffer is its own root."""
        return 0 if message.selector == "error" else self

    @method("encodeSignalEvent:value:")
    def signal(self, message: Message) -> Result:
        """The event has the value now."""
        message.object(0).signal(message, message.word(1))

    @method("GPUStartTime", "GPUEndTime", "kernelStartTime", "kernelEndTime")
    def time(self, message: Message) -> Result:
        """No time passes."""
        return 0.0

    @method("encodeWaitForEvent:value:", "setLabel:", "pushDebugGroup:", "popDebugGroup", "enqueue")
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


class ComputeEncoder(Object):
    """Collects arguments and launches kernels. Bindings stay from launch to launch."""

    name = "MTLComputeCommandEncoder"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._bindings: dict[tuple[str, int], Binding] = {}
        self._pipeline: Object | None = None

    def _bind(self, binding: Binding) -> None:
        slot = "threadgroup" if binding.kind == "threadgroup" else "argument"
        self._bindings[slot, binding.index] = binding

    @method("setComputePipelineState:")
    def pipeline(self, message: Message) -> Result:
        """The kernel to launch next."""
        self._pipeline = message.object(0)

    @method("setBuffer:offset:atIndex:")
    def buffer(self, message: Message) -> Result:
        """A buffer argument."""
        buffer, offset, index = message.object(0), message.word(1), message.word(2)
        if buffer is None:
            self._bindings.pop(("argument", index), None)
            return
        address = self._context.cpu.memory.host(buffer.contents_at) + offset
        length = buffer.size - offset
        slack = min(self._context.slack(buffer), length)
        self._bind(
            Binding(
                index=index,
                kind="buffer",
                address=address,
                length=length,
                before=offset,
                slack=slack,
            )
        )

    @method("setBufferOffset:atIndex:")
    def offset(self, message: Message) -> Result:
        """Another offset in the same buffer: not used by any release so far."""
        raise message.missing(self.name)

    @method("setBytes:length:atIndex:")
    def bytes(self, message: Message) -> Result:
        """A small argument, copied now. Nothing at all may be no address, as 2.5 has it for 0-d."""
        length = message.word(1)
        data = message.cpu.memory.read(message.word(0), length) if length else b""
        address = self._context.scratch(data)
        self._bind(Binding(index=message.word(2), kind="bytes", address=address, length=len(data)))

    @method("setThreadgroupMemoryLength:atIndex:")
    def threadgroup_memory(self, message: Message) -> Result:
        """Memory that a threadgroup shares."""
        self._bind(Binding(index=message.word(1), kind="threadgroup", length=message.word(0)))

    @method("dispatchThreads:threadsPerThreadgroup:")
    def threads(self, message: Message) -> Result:
        """A grid of threads."""
        self._launch(message, "threads")

    @method("dispatchThreadgroups:threadsPerThreadgroup:")
    def threadgroups(self, message: Message) -> Result:
        """A grid of threadgroups."""
        self._launch(message, "threadgroups")

    def _launch(self, message: Message, mode: str) -> None:
        kernel = self._pipeline.kernel  # type: ignore[union-attr]
        bindings = tuple(
            sorted(self._bindings.values(), key=lambda binding: (binding.kind, binding.index))
        )
        launch = Launch(kernel, message.triple(0), message.triple(1), mode, bindings)
        self._context.recorder.launch(launch)

    @method(
        "useResource:usage:",
        "useResources:count:usage:",
        "useHeap:",
        "endEncoding",
        "setLabel:",
        "pushDebugGroup:",
        "popDebugGroup",
        "insertDebugSignpost:",
        "memoryBarrierWithScope:",
        "memoryBarrierWithResources:count:",
    )
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


class BlitEncoder(Object):
    """Copies and fills."""

    name = "MTLBlitCommandEncoder"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context

    @method("fillBuffer:range:value:")
    def fill(self, message: Message) -> Result:
        """Fills a range with a byte."""
        start, size, value = message.word(1), message.word(2), message.word(3) & 0xFF
        self._context.recorder.blit("fill", size)
        message.cpu.memory.write(message.object(0).contents_at + start, bytes([value]) * size)

    @method("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:")
    def copy(self, message: Message) -> Result:
        """Copies a range."""
        source, target, size = message.object(0), message.object(2), message.word(4)
        self._context.recorder.blit("copy", size)
        memory = message.cpu.memory
        data = memory.read(source.contents_at + message.word(1), size)
        memory.write(target.contents_at + message.word(3), data)

    @method("endEncoding", "setLabel:", "pushDebugGroup:", "popDebugGroup", "synchronizeResource:")
    def nothing(self, message: Message) -> Result:
        """Changes nothing that can be seen."""


class SharedEvent(Object):
    """An event with a value that only grows."""

    name = "MTLSharedEvent"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._value = 0
        self._waiting: list[tuple[int, int]] = []

    def signal(self, message: Message, value: int) -> None:
        """Sets the value and calls who waited for it."""
        self._value = max(self._value, value)
        due = [block for wanted, block in self._waiting if wanted <= self._value]
        self._waiting = [item for item in self._waiting if item[0] > self._value]
        for block in due:
            run_block(message, block, [self.address, self._value])

    @method("signaledValue")
    def signaled(self, message: Message) -> Result:
        """The value."""
        return self._value

    @method("setSignaledValue:")
    def set_value(self, message: Message) -> Result:
        """Sets the value."""
        self._value = message.word(0)

    @method("notifyListener:atValue:block:")
    def notify(self, message: Message) -> Result:
        """A block to call at a value."""
        value, block = message.word(1), message.word(2)
        if value <= self._value:
            run_block(message, block, [self.address, self._value])
        else:
            self._waiting.append((value, block))

    @method("waitUntilSignaledValue:timeoutMS:")
    def wait(self, message: Message) -> Result:
        """Whether the value is reached."""
        return self._value >= message.word(0)
