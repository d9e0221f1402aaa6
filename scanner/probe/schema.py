"""What an op's schema and tags say about it: facts, read from the installed torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from scanner.backends.overloads import overload

__all__ = ["Argument", "Schema", "schema_of"]


_BATCH_NORMS = ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")
_UNDECLARED = dict.fromkeys(_BATCH_NORMS, ("running_mean", "running_var"))
"""Arguments that an op changes although its schema does not say so."""


@dataclass(frozen=True)
class Argument:
    """One argument of an overload."""

    name: str
    kind: str
    """The element type: `Tensor`, `int`, `float`, `bool`, `number`, `ScalarType`, `Device`, …"""
    is_list: bool
    optional: bool
    """Whether the argument itself may be None."""
    keyword: bool
    """Whether it can only be given by name."""
    written: bool
    """Whether the op changes it."""


@dataclass(frozen=True)
class Schema:
    """One overload as the probe sees it."""

    op: str
    func: Any
    arguments: tuple[Argument, ...]
    family: str
    """The op's name without namespace, overload, `_foreach_` and the in-place underscore."""
    foreach: bool
    tags: frozenset[str]
    written: frozenset[str]
    """Names of the arguments that the op changes."""
    views: bool
    """Whether it returns views of its arguments and changes none."""

    @property
    def kind(self) -> str:
        """The overload's own name: `out`, `Tensor_mode`, or empty."""
        return self.op.partition(".")[2]


@cache
def schema_of(op: str) -> Schema:
    """The schema of `aten::add_.Tensor`. Raises `LookupError` when torch has no such overload."""
    func = overload(op)
    name = func._schema.name.partition("::")[2]
    arguments = tuple(_argument(name, argument) for argument in func._schema.arguments)
    in_place = name.endswith("_") and not name.endswith("__")
    plain = name.removesuffix("_") if in_place else name
    return Schema(
        op=op,
        func=func,
        arguments=arguments,
        family=plain.removeprefix("_foreach_"),
        foreach=plain.startswith("_foreach_"),
        tags=frozenset(_tag(tag) for tag in func.tags),
        written=frozenset(argument.name for argument in arguments if argument.written),
        views=_returns_views(func) and not any(argument.written for argument in arguments),
    )


def _argument(name: str, argument: Any) -> Argument:
    text = str(argument.real_type)
    optional = text.startswith("Optional[")
    text = text[len("Optional[") : -1] if optional else text
    is_list = text.startswith("List[")
    text = text[len("List[") : -1] if is_list else text
    return Argument(
        name=argument.name,
        kind=text.removeprefix("Optional[").removesuffix("]"),
        is_list=is_list,
        optional=optional,
        keyword=argument.kwarg_only,
        written=argument.name in _UNDECLARED.get(name, ())
        or (argument.alias_info is not None and argument.alias_info.is_write),
    )


def _returns_views(func: Any) -> bool:
    returns = func._schema.returns
    return bool(returns) and all(value.alias_info is not None for value in returns)


def _tag(tag: torch.Tag) -> str:
    return str(tag).partition(".")[2]
