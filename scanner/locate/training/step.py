"""Finds the training step in the user's file: the model's call, the loss and `backward()`."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from scanner.locate.context import is_module_class
from scanner.locate.reading.scopes import Scope, calls_in, header
from scanner.locate.training.blocks import autocast_dtype, is_without_gradient, place_of
from scanner.locate.training.reference import Reference
from scanner.locate.training.slices import OUTPUT, Slice, cut, loads

__all__ = ["Part", "TrainingStep", "find_step"]

_ENGINES = frozenset({"accelerator", "fabric", "engine"})
_DEPTH = 3


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one function does with the model's output, or with what an inner function returned."""

    scope: Scope
    code: Slice
    """From `OUTPUT` to the loss, or to the value returned."""


@dataclass(frozen=True, kw_only=True)
class TrainingStep:
    """What leads from the model's output to the loss, perhaps through several functions."""

    scope: Scope
    """Where the model is called."""
    call: ast.Call
    """The model's call."""
    method: str
    """Empty when the model itself is called, else the method."""
    parts: tuple[Part, ...]
    """Innermost first; each takes the value of the one before as its `OUTPUT`."""
    line: int
    """Of the loss."""
    backward_line: int
    is_named: bool = False
    """Whether the innermost part ends in names that its last statement assigned."""
    autocast: str | None = None
    notes: tuple[str, ...] = field(default=())


def find_step(reference: Reference) -> TrainingStep | None:
    """The first step in the file whose loss depends on the model's output with its gradient."""
    steps = [
        dataclasses.replace(
            step,
            backward_line=call.lineno,
            notes=(*step.notes, *_scaler_notes(reference, scope)),
        )
        for scope in _scopes(reference)
        for statement, call in calls_in(scope)
        if (loss := _backward_of(call)) is not None
        and (step := _step(reference, scope, statement, loss, _DEPTH)) is not None
    ]
    kept = [step for step in steps if not _is_detached(step)]
    return next(iter(kept or steps), None)


def _scopes(reference: Reference) -> Iterator[Scope]:
    namespace = reference.context.namespace
    for scope in reference.context.scopes:
        if not is_module_class(namespace.get(scope.owner)):
            yield scope


def _backward_of(call: ast.Call) -> ast.expr | None:
    """The loss in `loss.backward()`, `scaler.scale(loss).backward()`, `engine.backward(loss)`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in {
        "backward",
        "manual_backward",
    }:
        return None
    receiver = function.value
    if isinstance(receiver, ast.Name) and call.args:
        name = receiver.id.removeprefix("self.").lower()
        if any(engine in name for engine in _ENGINES) or function.attr == "manual_backward":
            return call.args[0]
    if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        return receiver.args[0] if receiver.func.attr == "scale" else receiver
    return receiver


def _step(
    reference: Reference, scope: Scope, statement: ast.stmt, loss: ast.expr, depth: int
) -> TrainingStep | None:
    rough = _cut(reference, scope, statement, loss, depth)
    nodes = [part for node in (*rough.statements, rough.expression) for part in ast.walk(node)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    found = [call for call in calls if _method(reference, scope, call) is not None]
    if not found:
        return _entered(reference, scope, statement, loss, calls, depth)
    first = min(found, key=place_of)
    if is_without_gradient(scope, first):
        return None
    exact = _cut(reference, scope, statement, loss, depth, first)
    is_named = _is_named(loss, exact)
    return TrainingStep(
        scope=scope,
        call=first,
        method=_method(reference, scope, first) or "",
        parts=(Part(scope=scope, code=exact),),
        line=(exact.statements[-1] if is_named else loss).lineno,
        is_named=is_named,
        backward_line=statement.lineno,
        autocast=autocast_dtype(reference.context.values(scope), first),
        notes=_call_notes(len({place_of(call) for call in found})),
    )


def _cut(
    reference: Reference,
    scope: Scope,
    statement: ast.stmt,
    loss: ast.expr,
    depth: int,
    call: ast.Call | None = None,
) -> Slice:
    """The slice that leads to the loss, with `OUTPUT` in place of the call."""

    def depends(node: ast.AST) -> bool:
        return reference.is_model(scope, node) or _leads_to_model(reference, scope, node, depth)

    def replace(node: ast.AST) -> str | None:
        is_it = call is not None and isinstance(node, ast.Call) and place_of(node) == place_of(call)
        return OUTPUT if is_it else None

    return cut(scope, statement, loss, depends, replace)


def _leads_to_model(reference: Reference, scope: Scope, node: ast.AST, depth: int) -> bool:
    """Whether a call enters a function of the file that uses the model."""
    if depth == 0 or not isinstance(node, ast.Call):
        return False
    return any(
        reference.is_model(inner, part) or _leads_to_model(reference, inner, part, depth - 1)
        for inner in _entered_scopes(reference, scope, node)
        for statement in inner.statements
        for piece in header(statement)
        for part in ast.walk(piece)
    )


def _is_named(loss: ast.expr, exact: Slice) -> bool:
    """Whether the loss was computed by a statement before, and is only named here."""
    nodes = loss.elts if isinstance(loss, ast.Tuple) else [loss]
    plain = all(isinstance(node, ast.Name | ast.Constant) for node in nodes)
    return plain and bool(exact.statements)


def _method(reference: Reference, scope: Scope, node: ast.Call) -> str | None:
    """Empty for a call of the model, the name for one of its own methods, None for others."""
    function = node.func
    if reference.is_model(scope, function):
        return ""
    if not isinstance(function, ast.Attribute) or not reference.is_model(scope, function.value):
        return None
    if function.attr in {"forward", "__call__"}:
        return ""
    own = callable(getattr(type(reference.model), function.attr, None))
    return function.attr if own and not hasattr(torch.nn.Module, function.attr) else None


def _entered(
    reference: Reference,
    scope: Scope,
    statement: ast.stmt,
    loss: ast.expr,
    calls: list[ast.Call],
    depth: int,
) -> TrainingStep | None:
    """The step inside a function that the loss comes from: `loss = compute_loss(model, x)`."""
    for call in calls if depth else ():
        outer = _cut(reference, scope, statement, loss, depth, call)
        for inner in _entered_scopes(reference, scope, call):
            step = _returned(reference, inner, outer, depth)
            if step is not None:
                autocast = step.autocast or autocast_dtype(reference.context.values(scope), call)
                parts = (*step.parts, Part(scope=scope, code=outer))
                return dataclasses.replace(step, autocast=autocast, parts=parts)
    return None


def _entered_scopes(reference: Reference, scope: Scope, call: ast.Call) -> list[Scope]:
    """What a call may enter: a function, a method of self, or a method of any plain class."""
    names: set[str] = set()
    if isinstance(call.func, ast.Name):
        name = call.func.id
        own = f"{scope.owner}.{name.removeprefix('self.')}"
        names = {own if name.startswith("self.") else name}
    elif isinstance(call.func, ast.Attribute):
        names = {f"{s.owner}.{call.func.attr}" for s in _scopes(reference) if s.owner}
    return [s for s in _scopes(reference) if s.name in names and s.name != scope.name]


def _returned(reference: Reference, scope: Scope, outer: Slice, depth: int) -> TrainingStep | None:
    for statement in scope.statements:
        if isinstance(statement, ast.Return) and statement.value is not None:
            value = _narrowed(statement.value, outer)
            step = _step(reference, scope, statement, value, depth - 1)
            if step is not None:
                return step
    return None


def _narrowed(value: ast.expr, outer: Slice) -> ast.expr:
    """Of a returned tuple, only the elements that the caller needs; None in place of others."""
    if not isinstance(value, ast.Tuple):
        return value
    needed = {name for node in (*outer.statements, outer.expression) for name in loads(node)}
    for statement in outer.statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        is_output = target is not None and OUTPUT in loads(statement)
        if is_output and isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts):
            kept = [
                element
                if isinstance(name, ast.Name) and name.id in needed
                else ast.copy_location(ast.Constant(None), element)
                for element, name in zip(value.elts, target.elts, strict=True)
            ]
            return ast.copy_location(ast.Tuple(elts=kept, ctx=ast.Load()), value)
    return value


def _is_detached(step: TrainingStep) -> bool:
    """Whether the output enters the loss without its gradient, as a generator's does in a GAN."""
    code = step.parts[0].code
    text = "\n".join(ast.unparse(node) for node in (*code.statements, code.expression))
    return any(f"{name}.detach()" in text for name in (OUTPUT, *_output_names(code)))


def _output_names(code: Slice) -> Iterator[str]:
    for statement in code.statements:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
            continue
        target = statement.targets[0]
        if statement.value.id == OUTPUT and isinstance(target, ast.Name):
            yield target.id


def _call_notes(calls: int) -> tuple[str, ...]:
    if calls < 2:
        return ()
    told = f"the file calls the model {calls} times in one step"
    return (f"{told}; those after the first count as loss",)


def _scaler_notes(reference: Reference, scope: Scope) -> tuple[str, ...]:
    scaled = [c for _, c in calls_in(scope) if ast.unparse(c.func).endswith(".scale") and c.args]
    if not scaled:
        return ()
    where = reference.context.place(scaled[0].lineno)
    return (f"the gradient scaler at {where} is left out of the step",)
