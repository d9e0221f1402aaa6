"""Metal Performance Shaders kernels outside graphs: matrix products, decompositions, solvers."""

from __future__ import annotations

from dataclasses import replace

from scanner.sim.graph.recording import Argument, Descriptor, KernelRun
from scanner.sim.machine.faults import Fault
from scanner.sim.metal.bags import plain, signed
from scanner.sim.metal.context import Context
from scanner.sim.metal.ndarray import NDArray, View, dense_strides
from scanner.sim.metal.selectors import LAYOUT, argument_kind, parts
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Object, Result, method

__all__ = ["Kernel"]


class Kernel(Object):
    """A kernel object: made with arguments, encoded with operands."""

    def __init__(self, context: Context, name: str) -> None:
        super().__init__()
        self.name = name
        self._context = context
        self._made: dict[str, object] = {}

    @method("reshapeWithCommandBuffer:sourceArray:shape:destinationArray:")
    def reshape(self, message: Message) -> Result:
        """A view with another shape of the same memory."""
        source: NDArray = message.object(1)
        assert source.view is not None
        sizes = plain(message, message.word(2))
        shape = tuple(int(size) for size in sizes) if isinstance(sizes, tuple) else ()
        strides = _reshaped(source.view, shape)
        return NDArray(self._context, replace(source.view, shape=shape, strides=strides))

    def otherwise(self, message: Message) -> Result:
        """Initialisers and setters are kept; encode methods run."""
        selector = message.selector
        if selector.startswith("initWith"):
            self._keep(message, [name.removeprefix("initWith") for name in parts(selector)])
            return self
        if selector.startswith("set"):
            self._keep(message, [selector[3:-1]])
            return None
        if selector.startswith("encode"):
            self._context.recorder.kernel(
                KernelRun(Descriptor(self.name, dict(self._made)), selector, _arguments(message))
            )
            return None
        raise message.missing(self.name)

    def _keep(self, message: Message, names: list[str]) -> None:
        lowered = [name[:1].lower() + name[1:] for name in names]
        for argument in _decode(message, lowered):
            if argument.part != "device":
                self._made[argument.part] = argument.value


def _reshaped(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a view with another shape. Host code only adds and drops axes of length 1."""
    if view.strides == dense_strides(view.shape):
        return dense_strides(shape)
    kept = [(size, step) for size, step in zip(view.shape, view.strides, strict=True) if size != 1]
    if [size for size, _ in kept] != [size for size in shape if size != 1]:
        raise Fault(f"an array of strides {view.strides} is reshaped from {view.shape} to {shape}")
    steps = (step for _, step in kept)
    return tuple(next(steps) if size != 1 else 1 for size in shape)


def _arguments(message: Message) -> tuple[Argument, ...]:
    return _decode(message, parts(message.selector))


def _decode(message: Message, names: list[str]) -> tuple[Argument, ...]:
    kinds = [argument_kind(name) for name in names]
    layout = [LAYOUT.get(kind, kind) for kind in kinds]
    found = []
    for name, kind, raw in zip(names, kinds, message.decode(layout), strict=True):
        found.append(Argument(name, _value(message, kind, raw)))
    return tuple(found)


def _value(message: Message, kind: str, raw: float) -> object:
    if kind == "bool":
        return bool(raw)
    if kind == "integer":
        return signed(int(raw))
    return plain(message, int(raw)) if kind == "word" else raw
