"""Builds a model from a class or factory: as the file does it, without arguments, or from a
config dataclass."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import blamed
from scanner.locate.context import Context, is_module_class
from scanner.locate.reading.outline import HOOK
from scanner.locate.reading.scopes import Scope, calls_in
from scanner.locate.reading.values import Unresolved

__all__ = ["HOOK_EXAMPLE", "Plan", "is_constructible", "plan", "required_parameters", "run_plan"]

HOOK_EXAMPLE = f"""add to the file, for example:
    def {HOOK}():
        model = Net(width=64)
        inputs = (torch.empty(2, 3, 224, 224),)
        return model, inputs"""

_CONFIG_NAMES = frozenset(
    {"cfg", "config", "conf", "args", "hparams", "hp", "params", "options", "opt", "configuration"}
)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a class or factory will be called."""

    target: Callable[..., Any]
    args: Callable[[], tuple[list[Any], dict[str, Any]]]
    notes: tuple[str, ...] = ()


def required_parameters(target: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters that a call must give; none when the signature cannot be read."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError, NameError):  # NameError: annotations that cannot be read
        return []
    return [
        parameter
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]


def is_constructible(context: Context, target: Callable[..., Any]) -> bool:
    """Whether `plan` finds a way to call the target."""
    try:
        plan(context, target)
    except LocateError:
        return False
    return True


def plan(context: Context, target: Callable[..., Any]) -> Plan:
    """How to call a class or factory, by the first rule that fits.

    1. As the file itself calls it, when it passes arguments that constants settle.
    2. Without arguments.
    3. With a default-constructed config object for each required parameter.

    Raises `LocateError` naming the missing parameters otherwise.
    """
    required = required_parameters(target)
    as_called = _as_called(context, target)
    if as_called is not None:
        return as_called
    if not required:
        return Plan(target=target, args=lambda: ([], {}))
    configs = {parameter.name: _config(context, target, parameter) for parameter in required}
    missing = [name for name, config in configs.items() if not callable(config)]
    if not missing:
        made = {name: config for name, config in configs.items() if callable(config)}
        names = ", ".join(f"{config.__name__}()" for config in made.values())
        return Plan(
            target=target,
            args=lambda: ([], {name: config() for name, config in made.items()}),
            notes=(f"{target.__name__} built from {names} with its defaults",),
        )
    raise LocateError(_missing_message(context, target, missing, configs), remedy=HOOK_EXAMPLE)


def _missing_message(
    context: Context, target: Any, missing: list[str], configs: dict[str, Any]
) -> str:
    kind = "constructor" if inspect.isclass(target) else "factory"
    message = (
        f"{context.display}: the {kind} of {target.__name__} needs {', '.join(missing)}, "
        "and nothing in the file says which values to give"
    )
    unsure = [f"{n} may be any of {', '.join(configs[n])}" for n in missing if configs[n]]
    return "; ".join([message, *unsure])


def run_plan(context: Context, plan: Plan) -> Any:
    """Calls the target; what it raises becomes a `LocateError`."""
    name = plan.target.__name__
    with blamed(f"building {name}() failed", remedy=HOOK_EXAMPLE, cwd=context.cwd):
        args, kwargs = plan.args()
        return plan.target(*args, **kwargs)


def _as_called(context: Context, target: Callable[..., Any]) -> Plan | None:
    """The first call in the file, outside of model classes, whose arguments can be settled."""
    calls = list(_calls(context, target))
    for index, (scope, call) in enumerate(calls):
        values = context.values(scope)
        try:
            args, kwargs = values.arguments(call)
        except Unresolved:
            continue
        if not _binds(target, args, kwargs):
            continue
        if not args and not kwargs:
            return None
        others = [str(other.lineno) for _, other in calls[index + 1 :] if _differs(other, call)]
        also = f"; called differently at line {', '.join(others)}" if others else ""
        note = f"{target.__name__} built as at {context.place(call.lineno)}: {_short(call)}{also}"
        return Plan(target=target, args=_given(args, kwargs), notes=(note,))
    return None


def _given(
    args: list[Any], kwargs: dict[str, Any]
) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
    return lambda: (args, kwargs)


def _calls(context: Context, target: Any) -> Iterator[tuple[Scope, ast.Call]]:
    modules = {name for name, value in context.namespace.items() if is_module_class(value)}
    name = target.__name__
    for scope in context.scopes:
        if scope.owner in modules or scope.name == name:
            continue
        for _, call in calls_in(scope):
            function = call.func
            last = function.attr if isinstance(function, ast.Attribute) else None
            last = function.id if isinstance(function, ast.Name) else last
            if last == name and context.values(scope).target(function) is target:
                yield scope, call


def _binds(target: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(target).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


def _differs(one: ast.Call, other: ast.Call) -> bool:
    return ast.unparse(one) != ast.unparse(other)


def _short(call: ast.Call) -> str:
    text = ast.unparse(call)
    return text if len(text) <= 80 else text[:77] + "..."


def _config(context: Context, target: Any, parameter: inspect.Parameter) -> type | tuple[str, ...]:
    """The class to construct for a parameter, or the names of those it could be (none: empty)."""
    annotation = _annotation(target, parameter)
    if inspect.isclass(annotation) and _is_config(annotation):
        return annotation if not required_parameters(annotation) else ()
    if parameter.name not in _CONFIG_NAMES:
        return ()
    configs = _config_classes(context)
    own = [c for c in configs if c.__name__ in {f"{target.__name__}Config", "Config"}]
    if len(configs) == 1 or len(own) == 1:
        chosen = configs[0] if len(configs) == 1 else own[0]
        return chosen if not required_parameters(chosen) else ()
    return tuple(config.__name__ for config in configs)


def _annotation(target: Any, parameter: inspect.Parameter) -> Any:
    """The parameter's annotation, evaluated where that is possible; None without one."""
    function = target.__init__ if inspect.isclass(target) else target
    written = None if parameter.annotation is parameter.empty else parameter.annotation
    try:
        return typing.get_type_hints(function).get(parameter.name, written)
    except Exception:  # annotations may name what only type checkers import
        return written


def _is_config(annotation: type) -> bool:
    if dataclasses.is_dataclass(annotation):
        return True
    library = annotation.__module__.split(".")[0] in {"builtins", "torch", "typing", "collections"}
    return not library and not issubclass(annotation, torch.nn.Module)


def _config_classes(context: Context) -> list[type]:
    """Dataclasses that the file defines or imports; failing those, classes named `…Config`."""
    classes = [value for value in context.namespace.values() if inspect.isclass(value)]
    classes = list(dict.fromkeys(c for c in classes if context.is_users(c)))
    dataclass_ones = [c for c in classes if dataclasses.is_dataclass(c)]
    if dataclass_ones:
        return dataclass_ones
    return [c for c in classes if c.__name__.endswith(("Config", "Configuration", "Args"))]
