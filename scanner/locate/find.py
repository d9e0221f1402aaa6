"""The models that a loaded file offers, by rules applied in a fixed order.

1. `opscan_model()`, alone.       2. The entry that the configuration names, alone.
3. Module-level model objects.    4. Factories.    5. Module classes of the file.
6. Failing all of these: what its functions build from classes of other files or of torch.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch

from scanner.errors import LocateError, SourceError
from scanner.locate.construct import HOOK_EXAMPLE, is_constructible
from scanner.locate.context import Context, is_module_class
from scanner.locate.hook import subject_of_hook
from scanner.locate.interface import Candidate, Found, LocateOptions, Source
from scanner.locate.load import Loaded
from scanner.locate.local_models import LocalModel, local_models
from scanner.locate.parts import Parts
from scanner.locate.reading.outline import HOOK, is_loss_name
from scanner.locate.reading.scopes import calls_in
from scanner.locate.subject import from_class, from_factory, from_local, from_object
from scanner.locate.wrappers import unwrapped

__all__ = ["candidates"]

_How = str


def candidates(loaded: Loaded, source: Source, options: LocateOptions) -> Found:
    """Every model of the source, or the one that `source.name` or `options.entry` selects.

    Nothing is built here. Raises `LocateError` when there is no model, or none of that name.
    """
    found = _found(Context(loaded), source, options)
    return Found(candidates=found.candidates, notes=(*source.notes, *loaded.notes, *found.notes))


def _found(context: Context, source: Source, options: LocateOptions) -> Found:
    if source.name is not None:
        return Found(candidates=(_named(context, source.name, options),))
    if HOOK in context.namespace:
        return _hook_only(context, options)
    if options.entry is not None:
        chosen = _named(context, options.entry, options, how="config")
        return Found(candidates=(chosen,))
    return _offered(context, options)


def _hook_only(context: Context, options: LocateOptions) -> Found:
    others = [name for name, _ in _globals(context)]
    others += [fact.name for fact in context.outline.modules if not is_loss_name(fact.name)]
    notes: tuple[str, ...] = ()
    if options.entry is not None:
        notes += (f"the entry {options.entry} is not used: {HOOK}() says what to scan",)
    if others:
        notes += (f"{HOOK}() says what to scan; on request: {', '.join(others)}",)
    return Found(candidates=(_hook(context, options),), notes=notes)


def _hook(context: Context, options: LocateOptions, how: str = "hook") -> Candidate:
    return Candidate(
        name=f"{HOOK}()",
        entry=HOOK,
        how="config" if how == "config" else "hook",
        build=partial(subject_of_hook, context, options),
    )


def _offered(context: Context, options: LocateOptions) -> Found:
    parts = Parts(context)
    objects = list(_globals(context))
    parts.cover_objects(model for _, model in objects)
    factories, uncallable = _factories(context)
    parts.cover_functions(factories)
    classes = parts.top_level(_classes(context))
    found = [_object(context, name, model, options) for name, model in objects]
    found += [_factory(context, function, options) for function in factories]
    found += [_class(context, cls, options) for cls in classes]
    if not found:
        found = [_factory(context, function, options) for function in uncallable]
        uncallable = []
    if not found:
        found = [_class(context, cls, options) for cls in _classes(context, losses=True)]
    if not found:
        found = _built_elsewhere(context, options)
    if not found:
        raise _nothing(context)
    notes = (*parts.notes(), *_need_arguments(uncallable))
    return Found(candidates=tuple(found), notes=notes)


def _need_arguments(functions: list[Callable[..., Any]]) -> tuple[str, ...]:
    return tuple(
        f"{function.__name__} is not called: it needs arguments that the file does not settle"
        for function in functions
    )


def _globals(context: Context) -> Iterator[tuple[str, torch.nn.Module]]:
    """Module-level models that are no part of another one, each under its first name."""
    named: dict[int, tuple[str, torch.nn.Module]] = {}
    for name, value in context.namespace.items():
        if isinstance(value, torch.nn.Module) and not name.startswith("_") and _is_model(value):
            named.setdefault(id(unwrapped(value)), (name, value))
    inner = {
        id(part)
        for _, model in named.values()
        for part in model.modules()
        if part is not model and part is not unwrapped(model)
    }
    yield from (pair for key, pair in named.items() if key not in inner)


def _is_model(value: torch.nn.Module) -> bool:
    """Whether a module object is worth a scan: no loss, and it has something to compute with."""
    if isinstance(value, torch.nn.modules.loss._Loss) or is_loss_name(type(value).__name__):
        return False
    library = type(value).__module__.startswith("torch.nn.")
    return not library or any(True for _ in value.parameters())


def _factories(
    context: Context,
) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
    """Functions of the file that make a model: those that can be called, and the others."""
    names = [fact.name for fact in context.outline.factories]
    functions = [context.namespace.get(name) for name in names]
    own: list[Callable[..., Any]] = [
        f for f in functions if inspect.isfunction(f) and context.is_own(f)
    ]
    callable_ = [f for f in own if is_constructible(context, f)]
    return callable_, [f for f in own if f not in callable_]


def _classes(context: Context, *, losses: bool = False) -> list[type]:
    """Module classes that the file defines, in its order; abstract ones are left out."""
    return [
        value
        for name, value in context.namespace.items()
        if is_module_class(value)
        and context.is_own(value)
        and value.__name__ == name
        and not inspect.isabstract(value)
        and has_step(value)
        and is_loss_name(name) == losses
    ]


def has_step(cls: type) -> bool:
    """Whether a module class defines `forward` or `training_step`, itself or by inheritance."""
    defined = getattr(cls, "forward", None)
    missing = torch.nn.Module.forward
    return defined is not missing or hasattr(cls, "training_step")


def _built_elsewhere(context: Context, options: LocateOptions) -> list[Candidate]:
    """Imported module classes and factories that the file's own functions call."""
    targets: dict[int, Any] = {}
    for scope in context.scopes:
        values = context.values(scope)
        for _, call in calls_in(scope):
            target = values.target(call.func)
            if is_module_class(target) and not _is_library_layer(target):
                targets.setdefault(id(target), target)
    found = [_class(context, target, options) for target in targets.values()]
    return found or [_local(context, model, options) for model in local_models(context)]


def _is_library_layer(target: type) -> bool:
    return target.__module__.startswith("torch.")


def _object(
    context: Context, name: str, model: Any, options: LocateOptions, how: str = "global"
) -> Candidate:
    return Candidate(
        name=name,
        entry=name,
        how="config" if how == "config" else "global",
        build=partial(from_object, context, name, model, options),
    )


def _local(
    context: Context, model: LocalModel, options: LocateOptions, how: str = "class"
) -> Candidate:
    return Candidate(
        name=model.entry,
        entry=model.entry,
        how="config" if how == "config" else "class",
        build=partial(from_local, context, model, options),
    )


def _factory(
    context: Context, function: Any, options: LocateOptions, how: str = "factory"
) -> Candidate:
    return Candidate(
        name=f"{function.__name__}()",
        entry=function.__name__,
        how="config" if how == "config" else "factory",
        build=partial(from_factory, context, function, options),
    )


def _class(
    context: Context, cls: type, options: LocateOptions, how: str = "class", entry: str = ""
) -> Candidate:
    return Candidate(
        name=entry or cls.__name__,
        entry=entry or cls.__name__,
        how="config" if how == "config" else "class",
        build=partial(from_class, context, cls, options),
    )


def _named(context: Context, name: str, options: LocateOptions, how: str = "") -> Candidate:
    """The candidate of that name, whatever it is; raises `LocateError` listing what there is."""
    for model in local_models(context):
        if model.entry == name:
            return _local(context, model, options, how)
    thing: Any = context.loaded.module
    for part in name.removesuffix("()").split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            raise _unknown_name(context, name) from None
    if name.removesuffix("()") == HOOK:
        return _hook(context, options, how)
    if is_module_class(thing):
        return _class(context, thing, options, how, entry=name)
    if isinstance(thing, torch.nn.Module):
        return _object(context, name, thing, options, how)
    if inspect.isfunction(thing) or inspect.ismethod(thing):
        return _function(context, name.removesuffix("()"), thing, options, how)
    if callable(thing) and not inspect.isclass(thing):
        return _object(context, name, thing, options, how)
    raise SourceError(
        f"{context.display}: {name} is neither a model nor a function "
        f"(it is {_article(type(thing).__name__)})",
        remedy=_what_is_there(context),
    )


def _function(
    context: Context, name: str, function: Any, options: LocateOptions, how: str
) -> Candidate:
    """A function that needs arguments which nothing settles is taken as computing on tensors."""
    names = {fact.name for fact in context.outline.factories}
    if function.__name__ in names or is_constructible(context, function):
        return _factory(context, function, options, how)
    return _object(context, name, function, options, how)


def _article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _names(context: Context) -> list[str]:
    names: list[str] = [HOOK] if HOOK in context.namespace else []
    names += [name for name, _ in _globals(context)]
    names += [fact.name for fact in context.outline.factories]
    names += [
        name
        for name, value in context.namespace.items()
        if is_module_class(value) and context.is_own(value)
    ]
    return list(dict.fromkeys(names))


def _what_is_there(context: Context) -> str:
    names = _names(context)
    return f"models there: {', '.join(names)}" if names else HOOK_EXAMPLE


def _unknown_name(context: Context, name: str) -> LocateError:
    close = difflib.get_close_matches(name, _names(context), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return SourceError(f"{context.display} has no {name}{hint}", remedy=_what_is_there(context))


def _nothing(context: Context) -> LocateError:
    looked: Iterable[str] = (
        f"{HOOK}()",
        "a module-level nn.Module object",
        "a factory such as build_model()",
        "an nn.Module subclass",
    )
    return SourceError(
        f"{context.display}: no model found; looked for {', '.join(looked)}", remedy=HOOK_EXAMPLE
    )
