"""One op of a running step, with the arguments that it has on each lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from scanner.capture import describe
from scanner.probe.fingerprint import Fingerprint, fingerprint
from scanner.probe.invariants import invariants
from scanner.probe.schema import Schema

__all__ = ["Call", "Given", "is_ambiguous", "kept", "prints", "written"]

_KEPT = 1 << 28
"""Bytes of arguments that are kept to compute an op that writes them once more."""

Given = tuple[Any, Any]
"""Positional and keyword arguments."""


@dataclass(frozen=True)
class Call:
    """What is about to run."""

    op: str
    schema: Schema
    real: Given
    """The step's own, on the CPU."""
    ours: Given
    """On the device."""
    raised: Given
    """In double precision."""


def written(schema: Schema, given: Given) -> dict[str, Tensor]:
    """The arguments that the op changes, by name."""
    if not schema.written:
        return {}
    named = describe.schema_arguments(schema.func, *given)
    return {
        name: tensor
        for argument in schema.written
        for name, tensor in describe.tensors_in(argument, named.get(argument))
    }


def kept(schema: Schema, given: Given) -> Given | None:
    """The arguments as they are before the op; None when they are too large to copy."""
    changed = {id(tensor) for tensor in written(schema, given).values()}
    if not changed:
        return given
    leaves = [leaf for leaf in tree_leaves(given) if id(leaf) in changed]
    if sum(leaf.numel() * leaf.element_size() for leaf in leaves) > _KEPT:
        return None
    copies: Given = tree_map(lambda leaf: leaf.clone() if id(leaf) in changed else leaf, given)
    return copies


def prints(
    schema: Schema, named: Mapping[str, Tensor], wanted: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Fingerprint]:
    """Of the wanted outputs, or of what they are unique in; `given` are the op's attributes."""
    chosen = {name: tensor for name, tensor in named.items() if name in wanted and tensor.numel()}
    unique = _unique(schema, chosen, given)
    return {name: fingerprint(tensor) for name, tensor in (unique or chosen).items()}


def is_ambiguous(schema: Schema, named: dict[str, Tensor], given: Mapping[str, Any]) -> bool:
    """Whether the outputs are unique only up to signs or the like."""
    return _unique(schema, named, given) is not None


def _unique(
    schema: Schema, named: Mapping[str, Tensor], given: Mapping[str, Any]
) -> dict[str, Tensor] | None:
    return (
        invariants(schema.family, {n: t.detach().cpu() for n, t in named.items()}, given)
        if (named and ("linalg" in schema.family or schema.family == "geqrf"))
        else None
    )
