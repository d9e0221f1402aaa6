"""Vector-Jacobian products of one op, taken the same way on the CPU and on a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scanner.probe.invariants import unique_outputs
from scanner.probe.reference import changed_tensors, flat_results
from scanner.probe.schema import Schema
from scanner.records import OpCall

__all__ = ["NotDifferentiable", "Product", "differentiable", "underivable", "vjp"]

_NO_DERIVATIVE = re.compile(
    r"the derivative for '(?:\w+: )?(\w+)' is not implemented"
    r"|not differentiable with respect to argument '(\w+)'"
)
_NEVER = re.compile(
    r"derivative for aten::\w+ is not implemented"
    r"|does not support automatic differentiation|Autograd not support dtype"
)
_BUFFERS = frozenset({"running_mean", "running_var"})
"""Floating arguments that no step differentiates."""

_constant: dict[str, set[str]] = {}
"""Overload → arguments that its derivative does not cover, as learnt from what torch raises."""


class NotDifferentiable(Exception):  # noqa: N818  (an outcome, not an error)
    """The reference has no gradient for this configuration."""


@dataclass(frozen=True)
class _Leaves:
    """Arguments of a differentiated run."""

    tensors: tuple[Any, ...]
    """In the order of `OpCall.inputs`: leaves, and the others as they were."""
    wanted: tuple[int, ...]
    """Positions of the leaves."""
    given: tuple[Any, ...]
    """What to pass to the op: of changed arguments a copy, since a leaf cannot be changed."""


@dataclass(frozen=True)
class Product:
    """A vector-Jacobian product."""

    gradients: dict[str, Tensor]
    """By name of the input; an input that the outputs do not depend on is absent."""
    cotangents: dict[str, Tensor]
    """By name of the output that they were paired with."""


def differentiable(schema: Schema, call: OpCall) -> bool:
    """Whether gradients of this configuration are part of a training step.

    Backward and optimizer ops are not differentiated again.
    """
    return (
        call.phase in {"forward", "loss"}
        and "backward" not in schema.family
        and not any(spec.alias is not None for spec in call.inputs)
        and not any(argument.name == "out" for argument in schema.arguments if argument.written)
    )


def underivable(error: Exception) -> bool:
    """Whether torch has no derivative of the op at all, as opposed to no kernel for it here."""
    return isinstance(error, NotDifferentiable) or _NEVER.search(str(error)) is not None


def _leaves(schema: Schema, call: OpCall, tensors: Sequence[Any]) -> _Leaves:
    """Detached inputs that require gradients, laid out as they were."""
    constant = _BUFFERS | _constant.get(schema.op, set())
    held: list[Any] = []
    given: list[Any] = []
    wanted = []
    for place, (spec, tensor) in enumerate(zip(call.inputs, tensors, strict=True)):
        name = spec.name.partition("[")[0]
        floating = tensor.is_floating_point() or tensor.is_complex()
        if not floating or name in constant or tensor.layout != torch.strided:
            held.append(tensor)
            given.append(tensor)
            continue
        leaf = tensor.detach().requires_grad_()
        wanted.append(place)
        held.append(leaf)
        given.append(leaf.clone() if name in schema.written else leaf)
    return _Leaves(tuple(held), tuple(wanted), tuple(given))


def vjp(
    schema: Schema,
    call: OpCall,
    tensors: Sequence[Any],
    run: Callable[[Sequence[Any]], Any],
    cotangent: Callable[[str, Tensor], Tensor | None],
) -> Product:
    """Runs the op with gradients on and pulls cotangents back to its floating inputs.

    `run` takes the tensor arguments in order of `call.inputs`; `cotangent` gives the vector for an
    output, or None to leave it out. Raises `NotDifferentiable` when no output depends on an input
    by a derivative, and whatever the op or its derivative raises.
    """
    for _ in range(1 + len(schema.arguments)):
        try:
            return _attempt(schema, call, tensors, run, cotangent)
        except RuntimeError as error:
            match = _NO_DERIVATIVE.search(str(error))
            if match is None:
                raise
            known = _constant.setdefault(schema.op, set())
            name = _named(schema, match.group(1) or match.group(2))
            if name in known:
                raise NotDifferentiable(str(error)) from None
            known.add(name)
    raise NotDifferentiable("no argument has a derivative")


def _named(schema: Schema, name: str) -> str:
    """The schema's name of an argument: torch calls the first one `input` in some messages."""
    names = [argument.name for argument in schema.arguments]
    return names[0] if name == "input" and name not in names else name


def _attempt(
    schema: Schema,
    call: OpCall,
    tensors: Sequence[Any],
    run: Callable[[Sequence[Any]], Any],
    cotangent: Callable[[str, Tensor], Tensor | None],
) -> Product:
    inputs = _leaves(schema, call, tensors)
    if not inputs.wanted:
        raise NotDifferentiable("no floating input")
    with torch.enable_grad():
        result = run(inputs.given)
    outputs = _paired(schema, flat_results(result, changed_tensors(schema, call, inputs.given)))
    drawn = {name: cotangent(name, output) for name, output in outputs.items()}
    vectors = {name: vector for name, vector in drawn.items() if vector is not None}
    gradients = torch.autograd.grad(
        [outputs[name] for name in vectors],
        [inputs.tensors[place] for place in inputs.wanted],
        list(vectors.values()),
        allow_unused=True,
    )
    named = zip((call.inputs[place].name for place in inputs.wanted), gradients, strict=True)
    return Product({name: g for name, g in named if g is not None}, vectors)


def _paired(schema: Schema, outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Outputs that gradients flow through."""
    unique = unique_outputs(schema.family)
    paired = {
        name: output
        for name, output in outputs.items()
        if output.requires_grad and (unique is None or name in unique)
    }
    if not paired:
        raise NotDifferentiable("no output has a gradient")
    return paired
