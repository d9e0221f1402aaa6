"""Turns live tensors and arguments into records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from scanner.c10 import name_of
from scanner.records import TensorSpec

__all__ = [
    "attribute",
    "dtype_name",
    "op_name",
    "schema_arguments",
    "tensor_key",
    "tensor_spec",
    "tensors_in",
]


def op_name(func: Any) -> str:
    """`aten::mm`, `aten::add.Tensor`: the schema's name, without `.default`."""
    name = func._schema.name
    overload = func._schema.overload_name
    return f"{name}.{overload}" if overload else str(name)


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).partition(".")[2]


def schema_arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Every argument by schema name, with the schema's default where none was given."""
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    return {
        arg.name: _named(arg, given.get(arg.name, arg.default_value))
        for arg in func._schema.arguments
        if arg.name in given or arg.has_default_value()
    }


def _named(argument: Any, value: Any) -> Any:
    """Schemas give dtypes, layouts and memory formats by number, and devices as text."""
    if type(value) not in (int, str):
        return value
    kind = str(argument.real_type).removeprefix("Optional[").removesuffix("]")
    if isinstance(value, int):
        return name_of(kind, value) or value
    return torch.device(value) if kind == "Device" else value


def tensors_in(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors of one argument, lists flattened: `tensors[0]`, `tensors[1]`, …"""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, Tensor):
                yield f"{name}[{index}]", item


def tensor_spec(name: str, tensor: Tensor, *, host: bool, alias: int | None) -> TensorSpec:
    """Shape in elements, strides and offset in elements of the storage."""
    strided = tensor.layout == torch.strided
    return TensorSpec(
        name=name,
        dtype=dtype_name(tensor.dtype),
        shape=tuple(int(size) for size in tensor.shape),
        stride=tuple(int(step) for step in tensor.stride()) if strided else (),
        offset=int(tensor.storage_offset()) if strided else 0,
        layout=str(tensor.layout).partition(".")[2],
        device="cpu" if host else "target",
        alias=alias,
    )


def tensor_key(tensor: Tensor, host: bool) -> tuple[Any, ...]:
    """Hashable, and equal for tensors that `tensor_spec` describes alike but for name and alias."""
    if tensor.layout != torch.strided:
        return tensor.dtype, tensor.shape, tensor.layout, host
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), host


def attribute(value: Any, device: str = "mps") -> Any:
    """A non-tensor argument as JSON, see `OpCall.attributes`; devices become `device`."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [attribute(item, device) for item in value]
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return str(value).partition(".")[2]
    if isinstance(value, torch.device):
        return device
    if isinstance(value, torch.SymInt):
        return int(value)
    return str(value)
