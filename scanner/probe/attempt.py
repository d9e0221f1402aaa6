"""One run of a configuration on a device: everything up there, the op, everything back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from scanner.backends.interface import Device
from scanner.probe.expected import copied, dense
from scanner.probe.poison import poison_memory
from scanner.probe.rebuild import Operands, bind
from scanner.probe.reference import changed_tensors, flat_results
from scanner.probe.schema import Schema, schema_of
from scanner.probe.substitutes import DEVICE_SAVED
from scanner.records import OpCall

__all__ = ["Attempt", "attempt", "downloaded", "invoke", "on_device", "with_saved"]


@dataclass
class Attempt:
    """What came back."""

    error: Exception | None = None
    live: dict[str, Tensor] = field(default_factory=dict)
    """Outputs as the device holds them, for dtype, shape and strides."""
    outputs: dict[str, Tensor] = field(default_factory=dict)
    """The same on the CPU, dense."""
    storages: list[Tensor] = field(default_factory=list)
    """Every input storage after the run, in the order of `Operands.storages`."""
    seconds: float = 0.0
    """Of the call itself, waited for; 0 when it raised."""


def on_device(device: Device, call: OpCall, operands: Operands) -> tuple[list[Any], list[Any]]:
    """Tensors and whole storages on the device, aliasing as on the host.

    Tensors that the user keeps on the host stay there, as copies.
    """
    away = [place for place, spec in enumerate(call.inputs) if spec.device != "cpu"]
    groups = sorted({g for place in away if (g := operands.groups[place]) is not None})
    here = operands if len(away) == len(call.inputs) else copied(operands)
    uploaded = device.upload_all(
        [operands.tensors[place] for place in away] + [operands.storages[g] for g in groups]
    )
    tensors: list[Any] = list(here.tensors)
    for place, tensor in zip(away, uploaded, strict=False):
        tensors[place] = tensor
    storages: list[Any] = list(here.storages)
    for group, storage in zip(groups, uploaded[len(away) :], strict=True):
        storages[group] = storage
    return tensors, storages


def attempt(
    device: Device,
    schema: Schema,
    call: OpCall,
    operands: Operands,
    expected: Sequence[Tensor],
    pattern: int,
) -> Attempt:
    """Runs the op once. What the op raises is kept in the result.

    `expected` are the reference's outputs: free memory of their sizes is poisoned first.
    """
    tensors, storages = on_device(device, call, operands)
    poison_memory(device, expected, pattern)
    device.synchronize()
    start = time.perf_counter()
    try:
        with torch.no_grad():
            result = invoke(device, schema, call, tensors)
            device.synchronize()
    except Exception as error:
        return Attempt(error=error)
    seconds = time.perf_counter() - start
    live = flat_results(result, changed_tensors(schema, call, tensors))
    return Attempt(
        seconds=seconds,
        live=live,
        outputs={name: downloaded(device, tensor) for name, tensor in live.items()},
        storages=[device.download(storage) for storage in storages],
    )


def invoke(device: Device, schema: Schema, call: OpCall, tensors: Sequence[Any]) -> Any:
    """Calls the op on device tensors, after the forward whose private state it needs."""
    where = next((tensor.device for tensor in tensors if tensor.device.type != "cpu"), None)
    if where is None:
        where = device.upload(torch.zeros(())).device
    bound = bind(schema, call, with_saved(device, schema, call, tensors, where), where)
    return device.call(call.op, bound.args, bound.kwargs)


def with_saved(
    device: Device, schema: Schema, call: OpCall, tensors: Sequence[Any], where: torch.device
) -> Sequence[Any]:
    """The tensors, those in the device's private state replaced by what its forward op saves."""
    saved = DEVICE_SAVED.get(schema.op)
    if saved is None or where.type != "mps":
        return tensors  # elsewhere the op is composed of others, which need no such state
    forward, positions = saved
    outputs = device.call(*_forward_call(forward, schema, call, tensors, where))
    places = {spec.name: place for place, spec in enumerate(call.inputs)}
    replaced = list(tensors)
    for name, position in positions.items():
        replaced[places[name]] = outputs[position]
    return replaced


def _forward_call(
    forward: str, schema: Schema, call: OpCall, tensors: Sequence[Any], where: torch.device
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    bound = bind(schema, call, tensors, where)
    given = dict(zip((argument.name for argument in schema.arguments), bound.args, strict=False))
    names = [argument.name for argument in schema_of(forward).arguments]
    return forward, tuple(given[name] for name in names), {}


def downloaded(device: Device, tensor: Any) -> Tensor:
    """A dense CPU copy."""
    fetched: Tensor = device.download(tensor)
    return dense(fetched.detach())
