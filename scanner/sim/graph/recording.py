"""An MPSGraph as the host code built it, and one run of it.

Nothing here knows what a method means: every selector is kept with its arguments under the
keyword parts of its name, so that an interpreter can give it a meaning later.

    [graph concatTensors:@[a, b] dimension:-1 interleave:NO name:nil]

becomes

    Op(
        selector="concatTensors:dimension:interleave:name:",
        arguments=(
            Argument("concatTensors", (Ref(3), Ref(4))),
            Argument("dimension", -1),
            Argument("interleave", False),
            Argument("name", None),
        ),
        outputs=(5,),
    )
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "Argument",
    "Constant",
    "Descriptor",
    "Graph",
    "GraphRun",
    "KernelRun",
    "Node",
    "Op",
    "Operand",
    "Placeholder",
    "Ref",
    "TensorData",
    "TensorType",
]


class _Record(msgspec.Struct, frozen=True):
    """Immutable, compared by value."""


class TensorType(_Record, frozen=True):
    """What the host code says about a tensor of a graph."""

    shape: tuple[int, ...] | None
    """None when unranked; -1 for a dimension that is not known."""
    dtype: str
    """Torch's name (`float32`, `bfloat16`, `bool`, `complex64`, …); empty when not said."""


class Ref(_Record, frozen=True):
    """A tensor of the same graph, by its value number."""

    value: int


class Descriptor(_Record, frozen=True):
    """A descriptor object with the properties that were set, by construction or by setters.

    A property is named as the keyword part or the setter names it, with a small first letter:
    `strideInX`, `paddingStyle`, `dataLayout`, `returnIndicesMode`. Enumerations are integers.
    """

    name: str
    """Class: `MPSGraphPooling2DOpDescriptor`."""
    properties: dict[str, Any]


Operand = Any
"""None, bool, int, float, str, bytes, `Ref`, `TensorType`, `Descriptor`, or a tuple of these.

Data types (`dataType:`, `toType:`) are torch's names. NSNumber arrays (shapes, axes) are tuples
of integers. A range (`withSubrange:`) is a tuple (start, length). Anything else that has no
value of its own is a `Descriptor` without properties.
"""


class Argument(_Record, frozen=True):
    """One argument under its part of the selector; the first part is named as it is spelled."""

    part: str
    value: Operand


class Placeholder(_Record, frozen=True):
    """A tensor that is fed when the graph runs."""

    value: int
    type: TensorType
    name: str = ""


class Constant(_Record, frozen=True):
    """A tensor with known content.

    Exactly one of `data` (packed, row major, of `type.dtype`) and `scalar` (fills the shape;
    a `complex` for complex types) is given.
    """

    value: int
    type: TensorType
    data: bytes | None = None
    scalar: float | complex | None = None


class Op(_Record, frozen=True):
    """One method called on the graph."""

    selector: str
    arguments: tuple[Argument, ...]
    outputs: tuple[int, ...]
    """Value numbers; several when the method returns an array."""

    def __getitem__(self, part: str) -> Operand:
        """The argument under a part of the selector; KeyError when there is none."""
        for argument in self.arguments:
            if argument.part == part:
                return argument.value
        raise KeyError(part)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Value numbers of all operands, in order of the arguments, lists flattened."""
        return tuple(ref.value for argument in self.arguments for ref in _refs(argument.value))


Node = Placeholder | Constant | Op


class Graph(_Record, frozen=True):
    """A graph so far, in order of construction (which is a topological order)."""

    nodes: tuple[Node, ...]


class TensorData(_Record, frozen=True):
    """Memory that a run reads or writes."""

    address: int
    """Host address of element 0: readable and writable by this process."""
    nbytes: int
    """Bytes that may be touched from `address` on."""
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    """In elements; None when row major and dense."""


class GraphRun(_Record, frozen=True):
    """One execution of a graph on a command buffer."""

    graph: Graph
    feeds: tuple[tuple[int, TensorData], ...]
    """Placeholder value and what is fed."""
    results: tuple[tuple[int, TensorData], ...]
    """Value and where it is to be written. Shape and dtype are the destination's."""


class KernelRun(_Record, frozen=True):
    """One execution of a Metal Performance Shaders kernel that is not part of a graph.

    Matrix multiplication, decomposition and solvers: `MPSMatrixDecompositionLU`, …
    """

    kernel: Descriptor
    """The kernel's class and the arguments of its initialiser by part."""
    selector: str
    """The encode method."""
    arguments: tuple[Argument, ...]
    """Matrices and arrays are `TensorData`, or tuples of them."""


def _refs(value: Operand) -> tuple[Ref, ...]:
    if isinstance(value, Ref):
        return (value,)
    if isinstance(value, tuple):
        return tuple(ref for item in value for ref in _refs(item))
    return ()
