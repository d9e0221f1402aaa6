"""MPSNDArray, MPSMatrix, MPSGraphTensorData: memory with a shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from scanner.sim.graph.recording import TensorData
from scanner.sim.metal.bags import Bag, plain
from scanner.sim.metal.context import Context
from scanner.sim.metal.dtypes import ITEM_SIZES, dtype_code, dtype_name
from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method
from scanner.sim.objc.numbers import NSNumber

__all__ = ["Matrix", "NDArray", "TensorDataObject", "View", "dense_strides"]


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


@dataclass(frozen=True)
class View:
    """Where an array lies: guest address of element 0, shape slowest first, strides in elements."""

    address: int
    room: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class NDArrayDescriptor(Bag):
    """MPSNDArrayDescriptor. Dimensions in its methods count from the fastest one."""

    name = "MPSNDArrayDescriptor"

    def __init__(self) -> None:
        super().__init__()
        self.view: View | None = None
        """When it was taken from an array."""

    def current(self) -> View:
        """Shape and type so far."""
        if self.view is None:
            shape = tuple(int(size) for size in self.properties["shape"])
            dtype = self.properties["dataType"]
            self.view = View(0, 0, shape, dense_strides(shape), dtype)
        return self.view

    @method("transposeDimension:withDimension:")
    def transpose(self, message: Message) -> Result:
        """Swaps two dimensions."""
        view = self.current()
        order = list(range(len(view.shape)))
        first, second = (len(order) - 1 - message.word(index) for index in (0, 1))
        order[first], order[second] = order[second], order[first]
        self.view = replace(
            view,
            shape=tuple(view.shape[index] for index in order),
            strides=tuple(view.strides[index] for index in order),
        )

    @method("sliceDimension:withSubrange:")
    def slice(self, message: Message) -> Result:
        """Keeps a range of one dimension."""
        view = self.current()
        place = len(view.shape) - 1 - message.word(0)
        start, length = message.word(1), message.word(2)
        size = ITEM_SIZES[view.dtype] * start * view.strides[place]
        shape = (*view.shape[:place], length, *view.shape[place + 1 :])
        self.view = replace(view, address=view.address + size, room=view.room - size, shape=shape)


class NDArray(Object):
    """MPSNDArray."""

    name = "MPSNDArray"

    def __init__(self, context: Context, view: View | None = None) -> None:
        super().__init__()
        self._context = context
        self.view = view

    def _view(self) -> View:
        assert self.view is not None
        return self.view

    def value(self) -> TensorData:
        """The recording's form."""
        view = self._view()
        dense = view.strides == dense_strides(view.shape)
        address = self._context.cpu.memory.host(view.address)
        return TensorData(
            address, view.room, view.shape, view.dtype, None if dense else view.strides
        )

    @method("initWithBuffer:offset:descriptor:")
    def over_buffer(self, message: Message) -> Result:
        """An array in a buffer."""
        buffer, offset = message.object(0), message.word(1)
        view = message.object(2).current()
        self.view = replace(view, address=buffer.contents_at + offset, room=buffer.size - offset)
        return self

    @method("initWithDevice:descriptor:")
    def fresh(self, message: Message) -> Result:
        """An array with memory of its own."""
        view = message.object(1).current()
        size = ITEM_SIZES[view.dtype]
        for length in view.shape:
            size *= length
        buffer = self._context.buffer(size)
        self.view = replace(view, address=buffer.contents_at, room=buffer.size)
        return self

    @method("arrayViewWithShape:strides:")
    def with_strides(self, message: Message) -> Result:
        """A view of the same memory; both lists are slowest dimension first."""
        view = self._view()
        shape = _sizes(message, 0)
        strides = _sizes(message, 1) if message.word(1) else dense_strides(shape)
        return NDArray(self._context, replace(view, shape=shape, strides=strides))

    @method("arrayViewWithCommandBuffer:descriptor:aliasing:", "arrayViewWithDescriptor:")
    def with_descriptor(self, message: Message) -> Result:
        """A view that a descriptor taken from this array describes."""
        place = 1 if message.selector.startswith("arrayViewWithCommandBuffer") else 0
        return NDArray(self._context, message.object(place).current())

    @method("writeBytes:strideBytes:")
    def write_bytes(self, message: Message) -> Result:
        """Fills the array with dense data."""
        view = self._view()
        size = ITEM_SIZES[view.dtype]
        for length in view.shape:
            size *= length
        memory = message.cpu.memory
        memory.write(view.address, memory.read(message.word(0), size))

    @method("readBytes:strideBytes:")
    def read_bytes(self, message: Message) -> Result:
        """Copies the array's data out; dense arrays only."""
        view = self._view()
        size = ITEM_SIZES[view.dtype]
        for length in view.shape:
            size *= length
        memory = message.cpu.memory
        memory.write(message.word(0), memory.read(view.address, size))

    @method("descriptor")
    def descriptor(self, message: Message) -> Result:
        """A descriptor that starts as this array."""
        made = NDArrayDescriptor()
        made.view = self._view()
        return made

    @method("numberOfDimensions")
    def rank(self, message: Message) -> Result:
        """Number of dimensions."""
        return len(self._view().shape)

    @method("lengthOfDimension:")
    def length(self, message: Message) -> Result:
        """Size of a dimension, counted from the fastest."""
        shape = self._view().shape
        place = len(shape) - 1 - message.word(0)
        return shape[place] if place >= 0 else 1

    @method("dataType")
    def data_type(self, message: Message) -> Result:
        """MPSDataType."""
        return dtype_code(self._view().dtype)

    @method("shape")
    def shape(self, message: Message) -> Result:
        """NSArray of sizes, slowest first."""
        adopt = message.runtime.adopt
        return NSArray([adopt(NSNumber(size)).address for size in self._view().shape])


class TensorDataObject(Object):
    """MPSGraphTensorData: what graphs are fed with and write to."""

    name = "MPSGraphTensorData"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self.array = NDArray(context)

    def value(self) -> TensorData:
        """The recording's form."""
        return self.array.value()

    @method("initWithMTLBuffer:shape:dataType:", "initWithMTLBuffer:shape:dataType:rowBytes:")
    def over_buffer(self, message: Message) -> Result:
        """Dense data at the start of a buffer."""
        buffer = message.object(0)
        shape = _sizes(message, 1)
        dtype = dtype_name(message.word(2))
        view = View(buffer.contents_at, buffer.size, shape, dense_strides(shape), dtype)
        self.array = NDArray(self._context, view)
        return self

    @method("initWithMPSNDArray:")
    def over_array(self, message: Message) -> Result:
        """An array's data."""
        self.array = message.object(0)
        return self

    @method("mpsndarray")
    def array_itself(self, message: Message) -> Result:
        """The array."""
        return self.array

    @method("shape", "dataType")
    def delegate(self, message: Message) -> Result:
        """What the array says."""
        return self.array.answers[message.selector](self.array, message)


class Matrix(Object):
    """MPSMatrix: rows, columns and a batch in a buffer."""

    name = "MPSMatrix"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._view: View | None = None

    def value(self) -> TensorData:
        """The recording's form: (matrices, rows, columns)."""
        assert self._view is not None
        view = self._view
        address = self._context.cpu.memory.host(view.address)
        return TensorData(address, view.room, view.shape, view.dtype, view.strides)

    @method("initWithBuffer:offset:descriptor:", "initWithBuffer:descriptor:")
    def over_buffer(self, message: Message) -> Result:
        """Matrices in a buffer."""
        offset = message.word(1) if ":offset:" in message.selector else 0
        described: dict[str, Any] = message.object(message.selector.count(":") - 1).properties
        buffer = message.object(0)
        size = ITEM_SIZES[described["dataType"]]
        count = int(described.get("matrices", 1))
        rows, columns = int(described["rows"]), int(described["columns"])
        strides = (described.get("matrixBytes", 0) // size, described["rowBytes"] // size, 1)
        self._view = View(
            buffer.contents_at + offset,
            buffer.size - offset,
            (count, rows, columns),
            strides,
            described["dataType"],
        )
        return self


def _sizes(message: Message, index: int) -> tuple[int, ...]:
    found = plain(message, message.word(index))
    return tuple(int(size) for size in found) if isinstance(found, tuple) else ()
