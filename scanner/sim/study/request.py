"""From `--args` to a configuration with values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from scanner.capture.describe import attribute, tensor_spec, tensors_in
from scanner.errors import UsageError
from scanner.locate.spec import TensorInput
from scanner.probe.inputs import captured
from scanner.probe.rebuild import Operands, dtype_of
from scanner.probe.schema import Argument, Schema
from scanner.records import OpCall
from scanner.sim.study.arguments import Item, TensorValues
from scanner.sim.study.draw import DRAWN, whole_range

__all__ = ["request"]


def request(
    schema: Schema, items: Sequence[Item], dtype: str, seed: int
) -> tuple[OpCall, Operands]:
    """The call that arguments spell; without any, tensors are drawn for what the op requires.

    Raises `UsageError` for arguments that the schema does not have or that are missing.
    """
    given = _named(schema, items) if items else _required(schema, dtype)
    drawn = _Drawn(seed)
    values = {name: drawn.value(value) for name, value in given.items()}
    inputs = []
    tensors = []
    for name, value in values.items():
        for place, tensor in tensors_in(name, value):
            host = isinstance(given[name], TensorInput) and given[name].on_host
            inputs.append(tensor_spec(place, tensor, host=host, alias=None))
            tensors.append(tensor)
    taken = {spec.name.partition("[")[0] for spec in inputs}
    plain = {name: attribute(value) for name, value in values.items() if name not in taken}
    call = OpCall(
        op=schema.op,
        phase="forward",
        inputs=tuple(inputs),
        attributes={**_defaults(schema, {*taken, *plain}), **plain},
    )
    return call, captured(call, tensors)


def _named(schema: Schema, items: Sequence[Item]) -> dict[str, Any]:
    """In the schema's order, which is that of a configuration's inputs."""
    names = [argument.name for argument in schema.arguments]
    given: dict[str, Any] = {}
    for place, (name, value) in enumerate(items):
        if name is None and place >= len(names):
            raise _misfit(schema, "it takes no more arguments")
        at = names[place] if name is None else name
        if at not in names or at in given:
            raise _misfit(schema, f"{at} is given twice" if at in given else f"it has no {at}")
        given[at] = value
    required = {a.name for a in schema.arguments if not a.optional and not _has_default(schema, a)}
    if missing := sorted(required - set(given)):
        raise _misfit(schema, f"{' and '.join(missing)} must be given")
    return {name: given[name] for name in names if name in given}


def _required(schema: Schema, dtype: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    count = (
        1 << 16 if dtype_of(dtype).itemsize == 2 and dtype_of(dtype).is_floating_point else DRAWN
    )
    tensor = TensorInput(shape=(count,), dtype=dtype)
    for argument in schema.arguments:
        if argument.optional or _has_default(schema, argument):
            continue
        if argument.kind != "Tensor":
            raise _misfit(schema, f"{argument.name} ({argument.kind}) cannot be drawn")
        found[argument.name] = [tensor, tensor] if argument.is_list else tensor
    return found


def _has_default(schema: Schema, argument: Argument) -> bool:
    return argument.name in _defaults(schema, set())


def _defaults(schema: Schema, given: set[str]) -> dict[str, Any]:
    return {
        argument.name: attribute(argument.default_value)
        for argument in schema.func._schema.arguments
        if argument.has_default_value() and argument.name not in given
    }


def _misfit(schema: Schema, problem: str) -> UsageError:
    return UsageError(
        f"--args does not fit {schema.op}: {problem}", remedy=f"Its schema is {schema.func._schema}"
    )


class _Drawn:
    """Tensors for specs, each with a seed of its own."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, TensorValues):
            return torch.tensor(value.values, dtype=dtype_of(value.dtype))
        return self._tensor(value) if isinstance(value, TensorInput) else value

    def _tensor(self, spec: TensorInput) -> torch.Tensor:
        dtype, count = dtype_of(spec.dtype), math.prod(spec.shape)
        self._seed += 1
        if spec.low is None or spec.high is None:
            return whole_range(dtype, count, self._seed).reshape(spec.shape)
        generator = torch.Generator().manual_seed(self._seed)
        if not dtype.is_floating_point:
            low, high = int(spec.low), int(spec.high)
            return torch.randint(low, high, spec.shape, generator=generator).to(dtype)
        unit = torch.rand(spec.shape, generator=generator, dtype=torch.float64)
        return (unit * (spec.high - spec.low) + spec.low).to(dtype)
