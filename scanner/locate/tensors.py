"""Makes the tensors of an input spec in the world that surrounds the call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from scanner.locate.spec import Group, InputSpec, Literal, TensorInput, Value

__all__ = ["make_inputs", "make_value", "spec_of"]

_SEED = 0


def make_inputs(spec: InputSpec, *, real: bool = False) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments.

    Without `real` the tensors are `torch.empty`: enough where tensors hold no values. With it they
    are drawn from a fixed seed: floats from a normal distribution or uniformly from their range,
    integers uniformly from their range (0 and 1 where none is given).
    """
    made = [(name, make_value(value, real=real)) for name, value in spec.items]
    args = tuple(value for name, value in made if name is None)
    return args, {name: value for name, value in made if name is not None}


def make_value(value: Value, *, real: bool = False) -> Any:
    """One argument; see `make_inputs`."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, Group):
        items = [make_value(item, real=real) for item in value.items]
        return items if value.is_list else tuple(items)
    dtype = getattr(torch, value.dtype)
    # No device but the surrounding world's, unless the tensor stays on the host, where it is real.
    placed = {"device": "cpu"} if value.on_host else {}
    if not real and not value.on_host:
        return torch.empty(value.shape, dtype=dtype)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_SEED)
        return _draw(value, dtype, placed)


def _draw(value: TensorInput, dtype: torch.dtype, placed: dict[str, Any]) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(value.shape, **placed) < 0.5
    if dtype.is_complex:
        return torch.randn(value.shape, dtype=dtype, **placed)
    low, high = value.low, value.high
    if not dtype.is_floating_point:
        bounds = (0, 2) if low is None or high is None else (int(low), int(high))
        return torch.randint(*bounds, value.shape, **placed).to(dtype)
    if low is None or high is None:
        return torch.randn(value.shape, **placed).to(dtype)
    return (torch.rand(value.shape, **placed) * (high - low) + low).to(dtype)


def spec_of(args: Iterable[Any], kwargs: dict[str, Any] | None = None) -> InputSpec | None:
    """The spec of existing arguments, or None when it cannot express one of them."""
    named: list[tuple[str | None, Any]] = [(None, arg) for arg in args]
    named += list((kwargs or {}).items())
    items = [(name, _value_of(arg)) for name, arg in named]
    if any(value is None for _, value in items):
        return None
    return InputSpec(tuple((name, value) for name, value in items if value is not None))


def _value_of(arg: Any) -> Value | None:
    if isinstance(arg, torch.Tensor):
        return TensorInput(shape=tuple(arg.shape), dtype=str(arg.dtype).removeprefix("torch."))
    if arg is None or isinstance(arg, bool | int | float):
        return Literal(arg)
    if isinstance(arg, tuple | list) and type(arg) in (tuple, list) and arg:
        items = [_value_of(item) for item in arg]
        if all(item is not None for item in items):
            return Group(tuple(i for i in items if i is not None), isinstance(arg, list))
    return None
