"""The optimizer and gradient clipping that the user's file has for a model."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from scanner.locate.context import is_module_class
from scanner.locate.reading.scopes import Scope, calls_in
from scanner.locate.reading.values import Unresolved
from scanner.locate.training.reference import Reference
from scanner.locate.training.slices import bindings, cut

__all__ = ["Clipping", "OptimizerPlan", "find_clipping", "find_optimizer", "step_line"]


@dataclass(frozen=True, kw_only=True)
class OptimizerPlan:
    """An optimizer over the model's parameters."""

    optimizer: Any
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """A call that clips the model's gradients."""

    clip: Callable[[], Any]
    notes: tuple[str, ...] = field(default=())


_Found = tuple[Scope, ast.stmt, ast.Call]


def find_optimizer(reference: Reference) -> OptimizerPlan | None:
    """The first optimizer that the file makes for the model; later ones are listed in a note."""
    present = _global_optimizer(reference)
    if present is not None:
        return present
    found = list(_constructions(reference))
    notes: list[str] = []
    for index, (scope, statement, call) in enumerate(found):
        try:
            optimizer, unsettled = _build(reference, scope, statement, call)
        except Exception as error:
            place = reference.context.place(call.lineno)
            notes.append(f"the optimizer at {place} could not be built: {error}")
            continue
        notes.append(_note(reference, call, optimizer, unsettled))
        others = [c.lineno for _, _, c in found[index + 1 :] if c.lineno != call.lineno]
        if others:
            lines = ", ".join(map(str, others))
            notes.append(f"other optimizers for this model at line {lines} were not used")
        return OptimizerPlan(optimizer=optimizer, notes=tuple(notes))
    return OptimizerPlan(optimizer=None, notes=tuple(notes)) if notes else None


def _global_optimizer(reference: Reference) -> OptimizerPlan | None:
    """A module-level optimizer object that holds the model's parameters."""
    own = {id(parameter) for parameter in reference.model.parameters()}
    for name, value in reference.context.namespace.items():
        if isinstance(value, torch.optim.Optimizer):
            held = {id(p) for group in value.param_groups for p in group["params"]}
            if held & own:
                note = f"optimizer from {reference.context.display}:{name}: {_shown(value)}"
                return OptimizerPlan(optimizer=value, notes=(note,))
    return None


def _constructions(reference: Reference) -> Iterator[_Found]:
    for scope in reference.context.scopes:
        values = reference.context.values(scope)
        for statement, call in calls_in(scope):
            target = values.target(call.func)
            if inspect.isclass(target) and issubclass(target, torch.optim.Optimizer):
                if _is_ours(reference, scope, call):
                    yield scope, statement, call
            elif _is_own_method(reference, scope, statement, call):
                yield scope, statement, call


def _is_ours(reference: Reference, scope: Scope, call: ast.Call) -> bool:
    """Whether the parameters handed over come from the model, as far as can be told."""
    if is_module_class(reference.context.namespace.get(scope.owner)):
        return reference.is_model(scope, ast.Name(id="self", ctx=ast.Load()))
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "params")]
    return any(reference.mentions(scope, node) for node in given)


def _is_own_method(reference: Reference, scope: Scope, statement: ast.stmt, call: ast.Call) -> bool:
    """`optimizer = model.configure_optimizers(…)`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or "optim" not in function.attr:
        return False
    return isinstance(statement, ast.Assign) and reference.is_model(scope, function.value)


def _build(
    reference: Reference, scope: Scope, statement: ast.stmt, call: ast.Call
) -> tuple[Any, list[str]]:
    values = reference.context.values(scope)
    if _is_own_method(reference, scope, statement, call):
        assert isinstance(call.func, ast.Attribute)
        args, kwargs = values.arguments(call)
        made = getattr(reference.model, call.func.attr)(*args, **kwargs)
        return first_optimizer(made), []
    settings, unsettled = _settings(reference, scope, call)
    params = _parameters(reference, scope, statement, call)
    return values.of(call.func)(params, **settings), unsettled


def first_optimizer(made: Any) -> Any:
    """The first optimizer in what a `configure_optimizers` returned; raises `TypeError`."""
    if isinstance(made, dict):
        made = made.get("optimizer")
    while isinstance(made, tuple | list) and made:
        made = made[0]
        made = made.get("optimizer") if isinstance(made, dict) else made
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"it returned {type(made).__name__}, not an optimizer")
    return made


def _settings(
    reference: Reference, scope: Scope, call: ast.Call
) -> tuple[dict[str, Any], list[str]]:
    """Keyword settings that constants settle, and the names of those that they do not."""
    values = reference.context.values(scope)
    signature = list(inspect.signature(values.of(call.func)).parameters)
    positional = dict(zip(signature[1:], call.args[1:], strict=False))
    settings: dict[str, Any] = {}
    unsettled: list[str] = []
    given = dict(positional)
    for keyword in call.keywords:
        if keyword.arg is None:
            settings.update(values.get(keyword.value, {}))
        else:
            given[keyword.arg] = keyword.value
    for name, node in given.items():
        if name == "params":
            continue
        try:
            settings[name] = values.of(node)
        except Unresolved:
            unsettled.append(name)
    return settings, unsettled


def _parameters(reference: Reference, scope: Scope, statement: ast.stmt, call: ast.Call) -> Any:
    """The file's own parameter groups where they can be run, else all parameters."""
    first = call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "params")
    part = cut(scope, statement, first, lambda node: reference.is_model(scope, node))
    bound, missing = bindings(reference, scope, part.free)
    if missing:
        return list(reference.model.parameters())
    filename = str(reference.context.loaded.path or reference.context.display)
    params = part.compiled(filename, reference.context.namespace)(**bound)
    return params if isinstance(params, list) else list(params)


def _note(reference: Reference, call: ast.Call, optimizer: Any, unsettled: list[str]) -> str:
    note = f"optimizer from {reference.context.place(call.lineno)}: {_shown(optimizer)}"
    if unsettled:
        note += f"; {', '.join(unsettled)} not settled by constants, defaults used"
    return note


def _shown(optimizer: Any) -> str:
    """`AdamW(lr=0.0003, weight_decay=0.1)`: what differs from the defaults, and lr."""
    known = inspect.signature(type(optimizer)).parameters
    shown = [
        f"{name}={value!r}"
        for name, value in optimizer.defaults.items()
        if name in known and (name == "lr" or value != known[name].default)
    ]
    return f"{type(optimizer).__name__}({', '.join(shown)})"


def find_clipping(reference: Reference) -> Clipping | None:
    """The first `clip_grad_norm_` or `clip_grad_value_` over the model's parameters."""
    for scope in reference.context.scopes:
        for _, call in calls_in(scope):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name not in {"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"}:
                continue
            if any(reference.mentions(scope, arg) for arg in call.args[:1]):
                return _clipping(reference, scope, call, name)
    return None


def _clipping(reference: Reference, scope: Scope, call: ast.Call, name: str) -> Clipping:
    function = getattr(torch.nn.utils, name)
    context = reference.context
    values = context.values(scope)
    names = list(inspect.signature(function).parameters)[1:]
    given = dict(zip(names, call.args[1:], strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    settings = {key: value for key in given if (value := values.get(given[key])) is not None}
    settings.setdefault(names[0], 1.0)
    run = _call_at(call, str(context.loaded.path or context.display), list(settings))
    shown = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return Clipping(
        clip=lambda: run(function, list(reference.model.parameters()), settings),
        notes=(f"gradients clipped as at {context.place(call.lineno)}: {name}({shown})",),
    )


def _call_at(node: ast.AST, filename: str, keywords: list[str]) -> Callable[..., Any]:
    """Calls a function from the node's line, so that what runs in it is located there."""
    made = ast.parse(f"f(p, {', '.join(f'{key}=s[{key!r}]' for key in keywords)})", mode="eval")
    for part in ast.walk(made):
        if hasattr(part, "lineno"):
            ast.copy_location(part, node)
    code = compile(made, filename, "eval")
    return lambda function, params, settings: eval(
        code, {"f": function, "p": params, "s": settings}
    )


def step_line(reference: Reference) -> int | None:
    """Line of `optimizer.step()`, perhaps through a gradient scaler; None when there is none."""
    for scope in reference.context.scopes:
        for _, call in calls_in(scope):
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr != "step":
                continue
            given = [ast.unparse(node).lower() for node in (function.value, *call.args)]
            if any("opt" in name for name in given):
                return call.lineno
    return None
