"""Finds the training step in the user's file: the model's call, the loss and `backward()`."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from scanner.locate.context import is_module_class
from scanner.locate.reading.scopes import Scope, calls_in
from scanner.locate.training.reference import Reference
from scanner.locate.training.slices import OUTPUT, Slice, cut

__all__ = ["TrainingStep", "find_step"]

_ENGINES = frozenset({"accelerator", "fabric", "engine"})
_DEPTH = 3
_Place = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class TrainingStep:
    """The part of one function that leads from the model's output to the loss."""

    scope: Scope
    call: ast.Call
    """The model's call."""
    method: str
    """Empty when the model itself is called, else the method."""
    loss: Slice
    """From `OUTPUT` to the loss."""
    line: int
    """Of the loss."""
    backward_line: int
    autocast: str | None = None
    notes: tuple[str, ...] = field(default=())


def find_step(reference: Reference) -> TrainingStep | None:
    """The first step in the file whose loss depends on the model's output with its gradient."""
    steps = [
        dataclasses.replace(step, backward_line=call.lineno)
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
    def depends(node: ast.AST) -> bool:
        return reference.is_model(scope, node)

    rough = cut(scope, statement, loss, depends)
    nodes = [part for node in (*rough.statements, rough.expression) for part in ast.walk(node)]
    found = [
        n for n in nodes if isinstance(n, ast.Call) and _method(reference, scope, n) is not None
    ]
    if not found:
        return _inner_step(reference, scope, nodes, depth)
    first = min(found, key=_place)
    place = _place(first)
    exact = cut(
        scope,
        statement,
        loss,
        depends,
        lambda node: OUTPUT if isinstance(node, ast.Call) and _place(node) == place else None,
    )
    method = _method(reference, scope, first) or ""
    return TrainingStep(
        scope=scope,
        call=first,
        method=method,
        loss=exact,
        line=(exact.statements[-1] if _is_name(loss, exact) else loss).lineno,
        backward_line=statement.lineno,
        autocast=_autocast(reference, scope, place),
        notes=_step_notes(reference, scope, len({_place(n) for n in found})),
    )


def _is_name(loss: ast.expr, exact: Slice) -> bool:
    """Whether the loss was computed by a statement before, and is only named here."""
    return isinstance(loss, ast.Name) and bool(exact.statements)


def _place(node: ast.Call) -> _Place:
    return node.lineno, node.end_col_offset or 0


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


def _inner_step(
    reference: Reference, scope: Scope, nodes: list[ast.AST], depth: int
) -> TrainingStep | None:
    """The step inside a function of the file that computes the loss: `loss = f(model, x)`."""
    if depth == 0:
        return None
    for node in nodes:
        names = _function_names(reference, scope, node)
        for inner in _scopes(reference) if names else ():
            if inner.name in names:
                step = _returned_step(reference, inner, depth)
                if step is not None:
                    return step
    return None


def _function_names(reference: Reference, scope: Scope, node: ast.AST) -> set[str]:
    """Scopes that a call may enter: a function, a method of self, or of any plain class."""
    if not isinstance(node, ast.Call):
        return set()
    if isinstance(node.func, ast.Name):
        name = node.func.id
        own = f"{scope.owner}.{name.removeprefix('self.')}"
        return {own if name.startswith("self.") else name}
    if not isinstance(node.func, ast.Attribute):
        return set()
    method = node.func.attr
    return {s.name for s in _scopes(reference) if s.owner and s.name == f"{s.owner}.{method}"}


def _returned_step(reference: Reference, scope: Scope, depth: int) -> TrainingStep | None:
    for statement in scope.statements:
        if isinstance(statement, ast.Return) and statement.value is not None:
            value = statement.value
            if isinstance(value, ast.Tuple) and value.elts:
                value = next((e for e in value.elts if "loss" in ast.unparse(e)), value.elts[0])
            step = _step(reference, scope, statement, value, depth - 1)
            if step is not None:
                return step
    return None


def _is_detached(step: TrainingStep) -> bool:
    """Whether the output enters the loss without its gradient, as a generator's does in a GAN."""
    output = ast.unparse(ast.Module(body=list(step.loss.statements), type_ignores=[]))
    names = [OUTPUT, *(_assigned_output(step))]
    text = f"{output}\n{ast.unparse(step.loss.expression)}"
    return any(f"{name}.detach()" in text for name in names)


def _assigned_output(step: TrainingStep) -> Iterator[str]:
    for statement in step.loss.statements:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
            continue
        target = statement.targets[0]
        if statement.value.id == OUTPUT and isinstance(target, ast.Name):
            yield target.id


def _autocast(reference: Reference, scope: Scope, place: _Place) -> str | None:
    """dtype of the autocast block around the model's call."""
    values = reference.context.values(scope)
    for statement in scope.statements:
        if not isinstance(statement, ast.With | ast.AsyncWith):
            continue
        if not any(isinstance(n, ast.Call) and _place(n) == place for n in ast.walk(statement)):
            continue
        for item in statement.items:
            dtype = _autocast_dtype(values, item.context_expr)
            if dtype is not None:
                return dtype
    return None


def _autocast_dtype(values: Any, node: ast.expr) -> str | None:
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("autocast"):
        return None
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if values.get(given.get("enabled"), True) is False:
        return None
    dtype = values.get(given.get("dtype"))
    if not isinstance(dtype, torch.dtype):
        dtypes = [v for v in map(values.get, node.args) if isinstance(v, torch.dtype)]
        dtype = dtypes[0] if dtypes else torch.float16
    return str(dtype).removeprefix("torch.")


def _step_notes(reference: Reference, scope: Scope, calls: int) -> tuple[str, ...]:
    notes: list[str] = []
    if calls > 1:
        notes.append(
            f"the file calls the model {calls} times in one step; those after the first count as "
            "loss"
        )
    scaled = [c for _, c in calls_in(scope) if ast.unparse(c.func).endswith(".scale") and c.args]
    if scaled:
        where = reference.context.place(scaled[0].lineno)
        notes.append(f"the gradient scaler at {where} is left out of the step")
    return tuple(notes)
