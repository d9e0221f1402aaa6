"""Hand-made graphs over torch's memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from scanner.sim.executors import Answer
from scanner.sim.graph.interpreter import Interpreter
from scanner.sim.graph.recording import (
    Argument,
    Constant,
    Graph,
    GraphRun,
    Node,
    Op,
    Placeholder,
    Ref,
    TensorData,
    TensorType,
)


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def data(tensor: Tensor) -> TensorData:
    """A tensor's memory, up to its last element."""
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    nbytes = (last + 1) * tensor.element_size() if tensor.numel() else 0
    strides = None if tensor.is_contiguous() else tensor.stride()
    return TensorData(tensor.data_ptr(), nbytes, tuple(tensor.shape), name(tensor.dtype), strides)


def placeholder(value: int, tensor: Tensor, ranked: bool = True) -> Placeholder:
    shape = tuple(tensor.shape) if ranked else None
    return Placeholder(value, TensorType(shape, name(tensor.dtype)), f"input {value}")


def scalar(value: int, number: complex, dtype: str = "float32") -> Constant:
    return Constant(value, TensorType((), dtype), scalar=number)


def op(selector: str, *arguments: Any, to: int | tuple[int, ...]) -> Op:
    """A node; references are `Ref`. `name:` is left out."""
    parts = selector.split(":")[:-1]
    made = zip(parts, (*arguments, None), strict=True)
    outputs = to if isinstance(to, tuple) else (to,)
    return Op(selector, tuple(Argument(part, value) for part, value in made), outputs)


def add(first: int, second: int, to: int) -> Op:
    return op("additionWithPrimaryTensor:secondaryTensor:name:", Ref(first), Ref(second), to=to)


def run(nodes: tuple[Node, ...], feeds: dict[int, Tensor], results: dict[int, Tensor]) -> Answer:
    """Runs a graph on the memory of these tensors."""
    fed = tuple((value, data(tensor)) for value, tensor in feeds.items())
    wanted = tuple((value, data(tensor)) for value, tensor in results.items())
    return Interpreter().run(GraphRun(Graph(nodes), fed, wanted))
