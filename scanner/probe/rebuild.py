"""Turns a captured configuration back into arguments: the layouts exactly, the values to be drawn.

Describing what is built here (`scanner.capture.describe`) gives the configuration it was built
from: dtype, shape, strides, storage offset, layout and which tensors share storage. Storage that no
tensor covers is filled with values that a kernel should never see, so that one that ignores strides
or offsets gives itself away.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scanner.c10 import name_of
from scanner.probe.layout import covered, extent, independent
from scanner.probe.schema import Argument, Schema
from scanner.records import OpCall, TensorSpec

__all__ = ["Bound", "Operands", "Unbuildable", "allocate", "bind", "dtype_of", "over_storages"]

_ELEMENT = re.compile(r"(.+)\[(\d+)\]")
_COMPRESSED = ("sparse_csr", "sparse_csc")


class Unbuildable(Exception):  # noqa: N818  (an outcome, not an error)
    """A configuration that cannot be rebuilt here; the text says why. Never a verdict on an op."""


@dataclass(frozen=True)
class Operands:
    """The tensors of a call, and the storages that they lie in."""

    tensors: tuple[Tensor, ...]
    """In the order of `OpCall.inputs`."""
    storages: tuple[Tensor, ...]
    """One flat tensor over each whole storage, in order of first use; none for sparse layouts."""
    groups: tuple[int | None, ...]
    """For each tensor the position of its storage."""


@dataclass(frozen=True)
class Bound:
    """Arguments ready for a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def dtype_of(name: str) -> torch.dtype:
    """`torch.float32` for `float32`. Raises `Unbuildable` when this torch has no such dtype."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Unbuildable(f"torch {torch.__version__} has no dtype {name}")
    return dtype


Draw = Callable[[int, tuple[int, ...]], Tensor]
"""Values for the tensor at a position of `inputs`, in the shape given."""


def allocate(call: OpCall, draw: Draw) -> Operands:
    """CPU tensors with the layouts of the configuration and drawn values."""
    groups, members = _groups(call.inputs)
    storages = [_storage([call.inputs[place] for place in group]) for group in members]
    tensors: list[Tensor] = []
    for place, spec in enumerate(call.inputs):
        at = groups[place]
        if at is None:
            tensors.append(_sparse(spec, draw(place, spec.shape)))
            continue
        tensors.append(_laid_over(storages[at], spec))
    for number, group in enumerate(members):
        _fill(group, tensors, storages[number], draw)
    return Operands(tuple(tensors), tuple(storages), groups)


def over_storages(operands: Operands, storages: Sequence[Tensor]) -> Operands:
    """The same tensors over other storages of the same lengths, whatever their dtype and device."""
    tensors = []
    for tensor, group in zip(operands.tensors, operands.groups, strict=True):
        if group is None:
            tensors.append(tensor)
            continue
        new, old = storages[group], operands.storages[group]
        view = new.view(tensor.dtype) if new.dtype == old.dtype != tensor.dtype else new
        tensors.append(view.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()))
    return Operands(tuple(tensors), tuple(storages), operands.groups)


def bind(schema: Schema, call: OpCall, tensors: Sequence[Any], device: torch.device | str) -> Bound:
    """Arguments by schema: `tensors` in the order of `call.inputs`, attributes decoded."""
    given: dict[str, Any] = {}
    for spec, tensor in zip(call.inputs, tensors, strict=True):
        _place(given, spec.name, tensor)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in schema.arguments:
        if argument.name in given:
            value = given[argument.name]
        elif argument.name in call.attributes:
            value = _decoded(argument, call.attributes[argument.name], device)
        elif argument.optional:
            value = None
        else:
            raise Unbuildable(f"the configuration lacks the argument {argument.name!r}")
        # After a gap, only names are safe; no gap arises, since None is given explicitly.
        if argument.keyword:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return Bound(tuple(args), kwargs)


def _place(given: dict[str, Any], name: str, tensor: Any) -> None:
    match = _ELEMENT.fullmatch(name)
    if match is None:
        given[name] = tensor
        return
    items = given.setdefault(match.group(1), [])
    # A list may hold None between tensors (`index`): those are not described.
    items.extend([None] * (int(match.group(2)) + 1 - len(items)))
    items[int(match.group(2))] = tensor


def _decoded(argument: Argument, value: Any, device: torch.device | str) -> Any:
    if value is None:
        return None
    if argument.is_list:
        items = value if isinstance(value, list | tuple) else [value]
        return [_scalar(argument.kind, item, device) for item in items]
    return _scalar(argument.kind, value, device)


def _scalar(kind: str, value: Any, device: torch.device | str) -> Any:
    if kind in {"number", "float", "complex", "Tensor"} and isinstance(value, str):
        return complex(value) if "j" in value else float(value)
    # A number may stand where a tensor is expected.
    if value is None or kind in {"int", "bool", "float", "number", "str", "Tensor"}:
        return value
    if kind in {"ScalarType", "Layout", "MemoryFormat"}:
        return _named(kind, value)
    if kind == "Device":
        return torch.device("cpu") if value == "cpu" else torch.device(device)
    if kind == "Generator":
        return None  # its state cannot be captured; the default generator stands in
    if kind == "Tensor" and isinstance(value, int | float):
        return value  # torch wraps a number itself, in a way that does not promote dtypes
    raise Unbuildable(f"an argument of type {kind} cannot be rebuilt")


def _named(kind: str, value: Any) -> Any:
    """Records of early versions give a schema's default by number."""
    name = name_of(kind, value) if isinstance(value, int) else value
    if kind == "ScalarType" and name is not None:
        return dtype_of(name)
    found = getattr(torch, str(name), None)
    if found is None:
        raise Unbuildable(f"torch {torch.__version__} has no {kind} {value}")
    return found


def _groups(specs: Sequence[TensorSpec]) -> tuple[tuple[int | None, ...], list[list[int]]]:
    """For each tensor its storage, and for each storage its tensors."""
    members: list[list[int]] = []
    groups: list[int | None] = []
    for place, spec in enumerate(specs):
        if spec.layout != "strided":
            groups.append(None)
        elif spec.alias is not None and groups[spec.alias] is not None:
            groups.append(groups[spec.alias])
            members[groups[spec.alias] or 0].append(place)
        else:
            groups.append(len(members))
            members.append([place])
    return tuple(groups), members


def _storage(specs: Sequence[TensorSpec]) -> Tensor:
    dtype = dtype_of(specs[0].dtype)
    sizes = [extent(s.shape, s.stride, s.offset) * dtype_of(s.dtype).itemsize for s in specs]
    # Every dtype over the storage must divide it.
    length = -(-max(sizes) // 16) * 16 if len({s.dtype for s in specs}) > 1 else max(sizes)
    return torch.empty(length // dtype.itemsize, dtype=dtype)


def _laid_over(storage: Tensor, spec: TensorSpec) -> Tensor:
    dtype = dtype_of(spec.dtype)
    flat = storage if storage.dtype == dtype else storage.view(dtype)
    return flat.as_strided(spec.shape, spec.stride, spec.offset)


def _fill(group: list[int], tensors: list[Tensor], storage: Tensor, draw: Draw) -> None:
    """Writes drawn values through the views; the first tensor over an element decides its value."""
    sole = len(group) == 1 and tensors[group[0]].numel() == storage.numel()
    if not sole:
        poison(storage)
    done: Tensor | None = None
    for place in group:
        tensor = tensors[place]
        if done is not None and tensor.dtype != storage.dtype:
            continue  # reinterprets bytes that are drawn already
        write(tensor, storage, lambda shape, place=place: draw(place, shape), done)  # type: ignore[misc]
        if len(group) > 1:
            done = covered(storage, [tensors[p] for p in group[: group.index(place) + 1]])


def write(
    tensor: Tensor, storage: Tensor, draw: Callable[[tuple[int, ...]], Tensor], done: Tensor | None
) -> None:
    """Draws values for one view; where `done` is set, values stay as they are."""
    target = independent(tensor)
    if target is None:
        # Elements overlap irregularly: only a value for each element of the storage is possible.
        inside = covered(storage, [tensor]) if done is None else covered(storage, [tensor]) & ~done
        storage[inside] = draw((int(inside.sum()),)).to(storage.dtype)
        return
    values = draw(tuple(target.shape))
    if done is not None:
        seen = done.as_strided(target.shape, target.stride(), target.storage_offset())
        values = torch.where(seen, target, values)
    target.copy_(values)


def poison(storage: Tensor) -> None:
    """Values that no kernel should read: NaN, or zero where that could index out of range."""
    floating = storage.is_floating_point() or storage.is_complex()
    storage.fill_(float("nan") if floating else 0)


def _sparse(spec: TensorSpec, dense: Tensor) -> Tensor:
    """About one element in three, since the number of entries was not captured."""
    if dense.layout != torch.strided:
        return dense  # as it was in the user's step
    thinned = dense.clone()
    thinned.view(-1)[0::3] = 0
    thinned.view(-1)[1::3] = 0
    if spec.layout == "sparse_coo":
        return thinned.to_sparse()
    if spec.layout in _COMPRESSED and len(spec.shape) >= 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of being in beta
            return thinned.to_sparse(layout=getattr(torch, spec.layout))
    raise Unbuildable(f"tensors of layout {spec.layout} cannot be rebuilt")
