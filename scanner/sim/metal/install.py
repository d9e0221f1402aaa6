"""Makes the imitated Metal known to a process."""

from __future__ import annotations

from scanner.sim.machine.cpu import Cpu, Handler
from scanner.sim.metal.bags import Bag, make_bag
from scanner.sim.metal.commands import CommandBuffer
from scanner.sim.metal.context import Context
from scanner.sim.metal.device import DispatchData, MTLDevice
from scanner.sim.metal.graph import MPSGraph
from scanner.sim.metal.kernels import Kernel
from scanner.sim.metal.library import FunctionConstants
from scanner.sim.metal.ndarray import Matrix, NDArray, NDArrayDescriptor, TensorDataObject
from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Class, Object, Result, class_method, method

__all__ = ["install"]

_BAGS = ("Descriptor", "Options")
_KERNELS = ("MPSMatrix", "MPSNDArray")


class CaptureManager(Object):
    """MTLCaptureManager: nothing is ever captured."""

    name = "MTLCaptureManager"

    @class_method("sharedCaptureManager")
    @staticmethod
    def shared(kind: Class, message: Message) -> Result:
        """The manager."""
        return kind.make()

    @method("supportsDestination:", "isCapturing")
    def no(self, message: Message) -> Result:
        """No."""
        return False


class EventListener(Object):
    """MTLSharedEventListener."""

    name = "MTLSharedEventListener"


class Queue(Object):
    """A dispatch queue or semaphore."""

    name = "dispatch_queue"


class _BagClass(Class):
    """A class of descriptors: every factory method makes one."""

    def otherwise(self, message: Message) -> Result:
        """`descriptor`, `descriptorWithX:y:`, `matrixDescriptorWithRows:columns:`."""
        return make_bag(self, message)


def install(context: Context) -> dict[str, Handler]:
    """Introduces the classes and returns handlers for what libraries import from Metal."""
    runtime = context.runtime
    runtime.define(MPSGraph, lambda: MPSGraph(context))
    runtime.define(TensorDataObject, lambda: TensorDataObject(context))
    runtime.define(NDArray, lambda: NDArray(context))
    runtime.define(Matrix, lambda: Matrix(context))
    runtime.define(CommandBuffer, lambda: CommandBuffer(context))
    for kind in (FunctionConstants, CaptureManager, EventListener):
        runtime.define(kind)
    runtime.define_family(lambda name: _family(context, name))
    device = runtime.adopt(MTLDevice(context))
    context.device = device

    def devices(cpu: Cpu) -> None:
        cpu.set_x(0, runtime.adopt(NSArray([device.address])).address)

    def default_device(cpu: Cpu) -> None:
        cpu.set_x(0, device.address)

    def data(cpu: Cpu) -> None:
        cpu.set_x(0, runtime.adopt(DispatchData(cpu.x(0), cpu.x(1))).address)

    def queue(cpu: Cpu) -> None:
        cpu.set_x(0, runtime.adopt(Queue()).address)

    return {
        "_MTLCopyAllDevices": devices,
        "_MTLCreateSystemDefaultDevice": default_device,
        "_dispatch_data_create": data,
        "_dispatch_queue_create": queue,
        "_dispatch_semaphore_create": queue,
    }


def _family(context: Context, name: str) -> Class | None:
    """Classes that differ only by name: descriptors and kernels."""
    if name == NDArrayDescriptor.name:
        return _BagClass(name, NDArrayDescriptor, {})
    if name.startswith(("MPS", "MTL")) and name.endswith(_BAGS):
        return _BagClass(name, lambda: _bag(name), {})
    if name.startswith(_KERNELS):
        return Class(name, lambda: Kernel(context, name), {})
    return None


def _bag(name: str) -> Bag:
    made = Bag()
    made.name = name
    return made
