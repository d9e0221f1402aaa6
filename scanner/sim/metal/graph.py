"""MPSGraph: every method is recorded, none is understood."""

from __future__ import annotations

from typing import Any

from scanner.sim.graph import recording
from scanner.sim.machine.faults import Fault
from scanner.sim.metal.bags import plain, signed
from scanner.sim.metal.context import Context
from scanner.sim.metal.dtypes import dtype_code, dtype_name
from scanner.sim.metal.ndarray import NDArray, TensorDataObject
from scanner.sim.metal.selectors import LAYOUT, argument_kind, output_count, parts
from scanner.sim.metal.typing import element_type
from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method
from scanner.sim.objc.numbers import NSNumber

__all__ = ["GraphTensor", "MPSGraph"]

_ENCODE = "encodeToCommandBuffer:feeds:targetOperations:resultsDictionary:executionDescriptor:"


class GraphTensor(Object):
    """A tensor of a graph."""

    name = "MPSGraphTensor"

    def __init__(self, graph: MPSGraph, number: int, kind: recording.TensorType | None) -> None:
        super().__init__()
        self.graph = graph
        self.number = number
        self.kind = kind

    def value(self) -> recording.Ref:
        """The recording's form."""
        return recording.Ref(self.number)

    def _inferred(self) -> recording.TensorType | None:
        if self.kind is None:
            self.kind = self.graph.infer(self.number)
        return self.kind

    @method("shape")
    def shape(self, message: Message) -> Result:
        """NSArray of dimensions; nil when unranked."""
        kind = self._inferred()
        if kind is None:
            raise Fault("the shape of an intermediate graph tensor is asked for and not known")
        return None if kind.shape is None else numbers(message, kind.shape)

    @method("dataType")
    def data_type(self, message: Message) -> Result:
        """MPSDataType."""
        return dtype_code(self.graph.element_type(self.number))

    @method("operation")
    def operation(self, message: Message) -> Result:
        """Only its identity matters."""
        return self


def numbers(message: Message, values: tuple[int, ...]) -> NSArray:
    """An NSArray of NSNumbers."""
    adopt = message.runtime.adopt
    return adopt(NSArray([adopt(NSNumber(value)).address for value in values]))


class MPSGraph(Object):
    """A graph under construction."""

    name = "MPSGraph"

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._nodes: list[recording.Node] = []
        self._makers: dict[int, recording.Node] = {}
        self._count = 0

    def snapshot(self) -> recording.Graph:
        """The graph so far."""
        return recording.Graph(tuple(self._nodes))

    def infer(self, number: int) -> recording.TensorType | None:
        """Type of a value, if the interpreter knows."""
        return self._context.recorder.infer(self.snapshot(), number)

    def element_type(self, number: int) -> str:
        """Type of a value's elements; empty if unknown."""
        node = self._makers[number]
        if isinstance(node, recording.Op):
            return element_type(node, number, self.element_type)
        return node.type.dtype

    def _add(self, node: recording.Node, values: tuple[int, ...]) -> None:
        self._nodes.append(node)
        self._makers.update(dict.fromkeys(values, node))

    def _tensor(self, kind: recording.TensorType | None) -> GraphTensor:
        self._count += 1
        return self._context.runtime.adopt(GraphTensor(self, self._count, kind))

    @method("placeholderWithShape:dataType:name:", "placeholderWithShape:name:")
    def placeholder(self, message: Message) -> Result:
        """A tensor to be fed."""
        has_type = message.selector.count(":") > 2
        dtype = dtype_name(message.word(1)) if has_type else "float32"
        kind = recording.TensorType(_shape(plain(message, message.word(0))), dtype)
        tensor = self._tensor(kind)
        name = plain(message, message.word(2 if has_type else 1)) or ""
        self._add(recording.Placeholder(tensor.number, kind, name), (tensor.number,))
        return tensor

    @method("constantWithScalar:dataType:", "constantWithScalar:shape:dataType:")
    def scalar(self, message: Message) -> Result:
        """A constant with one value."""
        shaped = ":shape:" in message.selector
        shape = _shape(plain(message, message.word(0))) if shaped else ()
        dtype = dtype_name(message.word(1 if shaped else 0))
        return self._constant(shape, dtype, scalar=message.cpu.d(0))

    @method("constantWithRealPart:imaginaryPart:dataType:")
    def complex_scalar(self, message: Message) -> Result:
        """A complex constant."""
        value = complex(message.cpu.d(0), message.cpu.d(1))
        return self._constant((), dtype_name(message.word(0)), scalar=value)

    @method("constantWithRealPart:imaginaryPart:shape:dataType:")
    def complex_filled(self, message: Message) -> Result:
        """A complex constant of a shape."""
        value = complex(message.cpu.d(0), message.cpu.d(1))
        shape = _shape(plain(message, message.word(0)))
        return self._constant(shape, dtype_name(message.word(1)), scalar=value)

    @method("constantWithData:shape:dataType:")
    def data(self, message: Message) -> Result:
        """A constant with given content."""
        shape = _shape(plain(message, message.word(1)))
        dtype = dtype_name(message.word(2))
        return self._constant(shape, dtype, data=message.object(0).data)

    def _constant(self, shape: Any, dtype: str, **content: Any) -> GraphTensor:
        kind = recording.TensorType(shape, dtype)
        tensor = self._tensor(kind)
        self._add(recording.Constant(tensor.number, kind, **content), (tensor.number,))
        return tensor

    @method(_ENCODE)
    def encode(self, message: Message) -> Result:
        """Runs the graph."""
        feeds = _bound(message, message.word(1))
        results = _bound(message, message.word(3))
        self._context.recorder.graph(recording.GraphRun(self.snapshot(), feeds, results))

    def otherwise(self, message: Message) -> Result:
        """Records a method as a node."""
        names = parts(message.selector)
        if not names or message.selector.startswith(("set", "encode", "run", "compile")):
            return self._configure(message)
        arguments = _arguments(message, names)
        count = output_count(message.selector, _mapping(arguments))
        tensors = [self._tensor(None) for _ in range(count or 1)]
        outputs = tuple(tensor.number for tensor in tensors)
        self._add(recording.Op(message.selector, arguments, outputs), outputs)
        if count:
            return NSArray([tensor.address for tensor in tensors])
        return tensors[0]

    def _configure(self, message: Message) -> Result:
        if message.selector.startswith("set"):
            return None
        raise message.missing(self.name)


def _arguments(message: Message, names: list[str]) -> tuple[recording.Argument, ...]:
    kinds = [argument_kind(name) for name in names]
    layout = [LAYOUT.get(kind, kind) for kind in kinds]
    found = []
    for name, kind, raw in zip(names, kinds, message.decode(layout), strict=True):
        found.append(recording.Argument(name, _operand(message, kind, raw)))
    return tuple(found)


def _operand(message: Message, kind: str, raw: float) -> Any:
    if kind == "dtype":
        return dtype_name(int(raw))
    if kind == "bool":
        return bool(raw)
    if kind == "integer":
        return signed(int(raw))
    if kind == "word":
        return plain(message, int(raw))
    return raw


def _mapping(arguments: tuple[recording.Argument, ...]) -> dict[str, object]:
    return {
        argument.part: argument.value.properties
        if isinstance(argument.value, recording.Descriptor)
        else argument.value
        for argument in arguments
    }


def _shape(value: Any) -> tuple[int, ...] | None:
    return tuple(int(size) for size in value) if isinstance(value, tuple) else None


def _bound(message: Message, dictionary: int) -> tuple[tuple[int, recording.TensorData], ...]:
    """Tensors and their memory."""
    found = []
    runtime = message.runtime
    pairs = runtime.find(dictionary).pairs if dictionary else {}
    for key, held in pairs.items():
        data = runtime.find(held)
        array: NDArray = data.array if isinstance(data, TensorDataObject) else data
        found.append((runtime.find(key).number, array.value()))
    return tuple(found)
