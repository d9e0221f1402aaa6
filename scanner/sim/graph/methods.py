"""The extension point of the graph interpreter: what a method of MPSGraph computes.

A module under `ops/` gives selectors their meaning and exposes them:

    METHODS = Methods()

    @METHODS.define("additionWithPrimaryTensor:secondaryTensor:name:")
    def add(call: Arguments) -> Tensor:
        return call.tensor("additionWithPrimaryTensor") + call.tensor("secondaryTensor")

A method is a pure function over CPU tensors of the recording's dtypes. It must not change its
operands, which may be views of anything, and returns a tensor, or one for every output of the
node. It raises `Unsupported` for what it does not model; any other exception counts as the same.
Operands may be meta tensors: shapes are asked for before a graph runs. A kernel that torch lacks
for a narrow type needs no care: the interpreter calls the method again with wider operands and
rounds what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from scanner.sim.graph.recording import Descriptor, Op, Operand, Ref

__all__ = ["Arguments", "Method", "Methods", "Properties", "Unsupported", "dtype_named"]


class Unsupported(Exception):  # noqa: N818 - a refusal, not a failure
    """A method does not model what it is asked for; the text says what."""


def dtype_named(name: str) -> torch.dtype:
    """Torch's type of a recorded name; Unsupported for a name that is empty or unknown."""
    found = getattr(torch, name, None) if name else None
    if not isinstance(found, torch.dtype):
        raise Unsupported(f"element type {name!r}")
    return found


class Properties:
    """What was set of a descriptor object; the rest has MPSGraph's defaults, given on reading."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.name = descriptor.name
        self._set = descriptor.properties

    def __contains__(self, name: str) -> bool:
        return name in self._set

    def __getitem__(self, name: str) -> Any:
        """The property; Unsupported when nothing set it."""
        if name not in self._set:
            raise Unsupported(f"{self.name} without {name}")
        return self._set[name]

    def get(self, name: str, default: Any) -> Any:
        """The property, or the default when nothing set it."""
        return self._set.get(name, default)


class Arguments:
    """The arguments of one call of a graph method, by the parts of its selector."""

    def __init__(self, op: Op, values: Mapping[int, Tensor]) -> None:
        self._op = op
        self._values = values
        self._parts = {argument.part: argument.value for argument in op.arguments}

    @property
    def selector(self) -> str:
        """The method that is called."""
        return self._op.selector

    @property
    def outputs(self) -> int:
        """How many tensors are returned."""
        return len(self._op.outputs)

    def __contains__(self, part: str) -> bool:
        return self._parts.get(part) is not None

    def __getitem__(self, part: str) -> Operand:
        """The recorded value: a number, text, tuple, `Ref`, None; Unsupported without the part."""
        if part not in self._parts:
            raise Unsupported(f"no argument {part}")
        return self._parts[part]

    def get(self, part: str, default: Operand = None) -> Operand:
        """The recorded value; the default when the selector lacks the part or it is nil."""
        found = self._parts.get(part)
        return default if found is None else found

    def tensor(self, part: str) -> Tensor:
        """A tensor operand."""
        return self._resolve(self[part], part)

    def optional(self, part: str) -> Tensor | None:
        """A tensor operand that may be nil or absent."""
        return self.tensor(part) if part in self else None

    def tensors(self, part: str) -> tuple[Tensor, ...]:
        """An array of tensor operands."""
        found = self[part]
        if not isinstance(found, tuple):
            raise Unsupported(f"{part} is no array of tensors")
        return tuple(self._resolve(item, part) for item in found)

    def operands(self) -> tuple[Tensor, ...]:
        """All tensor operands in order, arrays flattened."""
        return tuple(self._values[value] for value in self._op.inputs)

    def integers(self, part: str) -> tuple[int, ...]:
        """Shapes, axes: given as numbers, or as a tensor whose content must be known."""
        found = self[part]
        if isinstance(found, Ref):
            return _listed(self._values[found.value], part)
        if isinstance(found, tuple) and all(isinstance(item, int) for item in found):
            return tuple(int(item) for item in found)
        if isinstance(found, int):
            return (int(found),)
        raise Unsupported(f"{part} is no list of integers")

    def integer(self, part: str, default: int | None = None) -> int:
        """One integer, also from a tensor of one element."""
        if default is not None and part not in self:
            return default
        (found,) = self.integers(part)
        return found

    def number(self, part: str) -> float:
        """A floating-point argument."""
        found = self[part]
        if isinstance(found, int | float):
            return float(found)
        raise Unsupported(f"{part} is no number")

    def flag(self, part: str, default: bool = False) -> bool:
        """A truth value."""
        return bool(self.get(part, default))

    def dtype(self, part: str) -> torch.dtype:
        """An element type argument (`toType`, `dataType`)."""
        return dtype_named(str(self[part]))

    def descriptor(self, part: str = "descriptor") -> Properties:
        """A descriptor object."""
        found = self[part]
        if not isinstance(found, Descriptor):
            raise Unsupported(f"{part} is no descriptor")
        return Properties(found)

    def _resolve(self, operand: Operand, part: str) -> Tensor:
        if not isinstance(operand, Ref):
            raise Unsupported(f"{part} is no tensor")
        return self._values[operand.value]


def _listed(tensor: Tensor, part: str) -> tuple[int, ...]:
    if tensor.is_meta:
        raise Unsupported(f"{part} depends on data")
    return tuple(int(item) for item in tensor.flatten().tolist())


Method = Callable[[Arguments], Tensor | Sequence[Tensor]]


class Methods(Mapping[str, Method]):
    """Selectors and what they compute, filled while a module is read."""

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}

    def define(self, *selectors: str) -> Callable[[Method], Method]:
        """Decorator: the function computes these selectors."""

        def keep(function: Method) -> Method:
            for selector in selectors:
                if selector in self._methods:
                    raise ValueError(f"{selector} is defined twice")
                self._methods[selector] = function
            return function

        return keep

    def __getitem__(self, selector: str) -> Method:
        return self._methods[selector]

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)
