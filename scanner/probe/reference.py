"""What an op should give: the CPU in the same dtype, and the CPU in double precision.

The raised run answers what is right; the plain run answers how wrong the CPU itself is in that
dtype, which is the measure for a device (see `docs/comparison.md`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch import Tensor

from scanner.probe.rebuild import Operands, bind, over_storages
from scanner.probe.schema import Schema
from scanner.probe.substitutes import SUBSTITUTES
from scanner.records import OpCall

__all__ = [
    "WIDE",
    "Results",
    "changed_tensors",
    "evaluate",
    "flat_results",
    "lifted",
    "raise_operands",
]

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_WIDE_NAMES = {str(old).partition(".")[2]: str(new).partition(".")[2] for old, new in WIDE.items()}


@dataclass(frozen=True)
class Results:
    """What a run gave: tensors, or the error it raised."""

    outputs: dict[str, Tensor]
    """Returned tensors by position (`0`, `1[2]`) and changed arguments by name."""
    error: Exception | None = None


def reference_of(schema: Schema) -> Callable[..., Any]:
    """The function that computes the op on the CPU."""
    return SUBSTITUTES.get(schema.op, schema.func)


def raise_operands(operands: Operands) -> Operands | None:
    """Copies in double precision over copied storages; None when nothing is gained or it cannot be.

    A storage that two dtypes share has no meaning in another dtype.
    """
    wide = [WIDE.get(storage.dtype) for storage in operands.storages]
    if any(dtype is not None for dtype in wide) and _reinterpreted(operands):
        return None
    raised = [
        storage.to(dtype, copy=True) if dtype is not None else storage.clone()
        for storage, dtype in zip(operands.storages, wide, strict=True)
    ]
    copies = over_storages(operands, raised)
    tensors = [
        tensor.to(WIDE.get(tensor.dtype, tensor.dtype)) if group is None else tensor
        for tensor, group in zip(copies.tensors, copies.groups, strict=True)
    ]
    return Operands(tuple(tensors), copies.storages, copies.groups)


def _reinterpreted(operands: Operands) -> bool:
    return any(
        group is not None and tensor.dtype != operands.storages[group].dtype
        for tensor, group in zip(operands.tensors, operands.groups, strict=True)
    )


def lifted(schema: Schema, call: OpCall) -> OpCall:
    """The call with dtypes raised: an op that is told to give float32 gives float64."""
    names = {argument.name for argument in schema.arguments if argument.kind == "ScalarType"}
    attributes = {
        name: _WIDE_NAMES.get(value, value) if name in names and isinstance(value, str) else value
        for name, value in call.attributes.items()
    }
    return msgspec.structs.replace(call, attributes=attributes)


def changed_tensors(schema: Schema, call: OpCall, tensors: Sequence[Any]) -> dict[str, Any]:
    """The arguments that the op writes, by name."""
    return {
        spec.name: tensor
        for spec, tensor in zip(call.inputs, tensors, strict=True)
        if spec.name.partition("[")[0] in schema.written
    }


def evaluate(
    schema: Schema, call: OpCall, tensors: Sequence[Any], *, raised: bool = False, seed: int = 0
) -> Results:
    """Runs the op on CPU tensors, which it may change.

    Whatever the op raises is kept: the caller decides whose fault it is.
    """
    try:
        with torch.no_grad(), quiet(), default_dtype(raised):
            bound = bind(schema, call, tensors, "cpu")
            if "nondeterministic_seeded" in schema.tags:
                torch.manual_seed(seed)
            result = reference_of(schema)(*bound.args, **bound.kwargs)
    except Exception as error:
        return Results({}, error)
    return Results(flat_results(result, changed_tensors(schema, call, tensors)))


def flat_results(result: Any, changed: Mapping[str, Any]) -> dict[str, Tensor]:
    """Returned values and changed arguments as named tensors; an argument returned counts once."""
    outputs = dict(_flat("", result))
    known = {id(value) for value in changed.values()}
    outputs = {name: value for name, value in outputs.items() if id(value) not in known}
    return {**outputs, **changed}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name or "0", value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _flat(f"{name}[{index}]" if name else str(index), item)
    elif isinstance(value, bool | int | float | complex):
        wide = torch.complex128 if isinstance(value, complex) else None
        dtype = torch.float64 if isinstance(value, float) else wide
        yield name or "0", torch.tensor(value, dtype=dtype)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the reference's warnings, which say nothing about the device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def default_dtype(raised: bool) -> Iterator[None]:
    """Integers divide into the default dtype, and factories make it."""
    before = torch.get_default_dtype()
    if raised:
        torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        if raised:
            torch.set_default_dtype(before)
