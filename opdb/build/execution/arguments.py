"""A call's arguments: by name, by main operand, on their way to the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from opdb.operands import main_operand
from scanner.sim.call import SimTensor
from scanner.sim.session import Session
from scanner.sim.values import from_torch

__all__ = ["WIDE", "by_name", "copied", "main_of", "names_of", "send_to_device", "upload_all"]

WIDE = {torch.float64, torch.complex128}
"""No MPS tensor has these."""


def names_of(function: Any) -> tuple[str, str]:
    """`aten::add.Tensor` and `add`."""
    schema = function._schema
    op = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    return op, schema.name.split("::")[1]


def by_name(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """What was given, by the schema's names."""
    names = (argument.name for argument in function._schema.arguments)
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def main_of(given: dict[str, Any]) -> Tensor | None:
    """The main operand (`opdb.operands`)."""
    found: dict[str, Tensor] = {}
    for name, value in given.items():
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, list | tuple):
            found |= {f"{name}[{i}]": v for i, v in enumerate(value) if isinstance(v, Tensor)}
    place = main_operand(list(found))
    return None if place is None else list(found.values())[place]


def copied(values: Any) -> Any:
    """Nested arguments with tensors of their own."""
    return tree_map(lambda value: value.clone() if isinstance(value, Tensor) else value, values)


def send_to_device(function: Any, given: dict[str, Any]) -> None:
    """Makes factories make their tensors there."""
    if any(argument.name == "device" for argument in function._schema.arguments):
        given["device"] = "mps"
    given.pop("pin_memory", None)


def upload_all(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with their tensors on the device; one tensor stays one."""
    known: dict[int, SimTensor] = {}

    def upload(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if id(value) not in known:
            scalar = value.dtype in WIDE and value.dim() == 0
            known[id(value)] = session.upload(from_torch(value, "cpu" if scalar else "mps"))
        return known[id(value)]

    return {name: tree_map(upload, value) for name, value in given.items()}
