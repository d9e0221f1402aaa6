"""Which classes of a file are parts of its other models, and so are not scanned on their own."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from scanner.locate.context import Context, is_module_class
from scanner.locate.reading.scopes import Scope, calls_in
from scanner.locate.reading.trees import definition

__all__ = ["Parts"]


class Parts:
    """Collects which classes the offered models already contain, and remembers why."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._covered: dict[type, str] = {}
        """Class to the name of what contains or makes it."""
        self._users: dict[type, str] = {}

    def cover_objects(self, models: Iterable[torch.nn.Module]) -> None:
        """The classes of these objects and of everything inside them are covered."""
        for model in models:
            for part in model.modules():
                self._covered.setdefault(type(part), "a module-level object")

    def cover_functions(self, functions: Iterable[Callable[..., Any]]) -> None:
        """The class that each function makes is covered, and what that uses.

        A function that chooses between several covers their parts only, so that none is missed.
        """
        for function in functions:
            used = used_classes(function) - self._passed_in(function)
            tops = {c for c in used if not any(c in _closure([o]) for o in used if o is not c)}
            for cls in _closure(used_classes(function)):
                if len(tops) == 1 or cls not in tops:
                    self._covered.setdefault(cls, f"{function.__name__}()")

    def top_level(self, classes: list[type]) -> list[type]:
        """Those classes that neither another of them nor a covering object or function uses."""
        uses = {cls: _closure(used_classes(cls)) - {cls} for cls in classes}
        bases = {base for cls in classes for base in cls.__mro__[1:]}
        tops: list[type] = []
        for cls in classes:
            users = [user for user in classes if cls in uses[user] and user not in uses[cls]]
            children = [c.__name__ for c in classes if cls in bases and cls in c.__mro__[1:]]
            if cls in self._covered:
                self._users[cls] = self._covered[cls]
                continue
            if users or children:
                self._users[cls] = users[0].__name__ if users else children[0]
            elif not self._made_by_file(cls, classes):
                tops.append(cls)
        return tops

    def _made_by_file(self, cls: type, classes: list[type]) -> bool:
        """Whether the file passes the class to another one's constructor, in any function."""
        scopes = self._context.scopes
        found = [pair for scope in scopes for pair in self._constructions(scope)]
        for owner, passed in found:
            if owner in classes and owner is not cls and cls in passed:
                self._users[cls] = owner.__name__
                return True
        return False

    def _passed_in(self, function: Callable[..., Any]) -> set[type]:
        named = [s for s in self._context.scopes if s.name == function.__name__]
        found = [pair for scope in named for pair in self._constructions(scope)]
        return {cls for owner, passed in found for cls in passed if cls is not owner}

    def _constructions(self, scope: Scope) -> Iterator[tuple[type, set[type]]]:
        """Each call of a module class in a scope, with the module classes in its arguments."""
        namespace = self._context.namespace
        for _, call in calls_in(scope):
            owner = _class_at(call.func, namespace)
            if owner is None or not is_module_class(owner):
                continue
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            arguments += [made for node in arguments for made in _assigned(scope, node)]
            named = {_class_at(part, namespace) for arg in arguments for part in ast.walk(arg)}
            yield owner, {cls for cls in named if cls is not None and is_module_class(cls)}

    def notes(self) -> tuple[str, ...]:
        """One line for each user of parts."""
        groups: dict[str, list[str]] = {}
        for cls, user in self._users.items():
            groups.setdefault(user, []).append(cls.__name__)
        return tuple(
            f"{', '.join(names)}: used by {user}, not scanned alone; "
            f"name one to do so ({self._context.display}:{names[0]})"
            for user, names in groups.items()
        )


def _assigned(scope: Scope, node: ast.expr) -> list[ast.expr]:
    """What the names in an expression were assigned from."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return [value for name in names for value in scope.assigned.get(name, []) if value is not None]


def _closure(classes: Iterable[type]) -> set[type]:
    found: set[type] = set()
    waiting = list(classes)
    while waiting:
        cls = waiting.pop()
        if cls not in found:
            found.add(cls)
            waiting.extend(used_classes(cls))
    return found


def used_classes(target: Any) -> set[type]:
    """User-defined module classes that a class or function names in its body.

    Annotations of attributes and parameters count, since what is passed in is a part as well; so
    do the bodies of base classes.
    """
    own = _named_classes(target)
    for base in target.__mro__[1:] if inspect.isclass(target) else ():
        own |= _named_classes(base)
    return own - set(target.__mro__ if inspect.isclass(target) else ())


def _named_classes(target: Any) -> set[type]:
    if target.__module__.split(".")[0] in {"torch", "builtins", "abc", "typing"}:
        return set()
    node = definition(target)
    if node is None:
        return set()
    home = vars(sys.modules[target.__module__]) if target.__module__ in sys.modules else {}
    found = {_class_at(part, home) for part in ast.walk(node)}
    return {cls for cls in found if cls is not None and is_module_class(cls) and not _is_torch(cls)}


def _is_torch(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "torch"


def _class_at(node: ast.AST, namespace: dict[str, Any]) -> type | None:
    value: Any = None
    if isinstance(node, ast.Name):
        value = namespace.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = namespace.get(node.value.id)
        value = getattr(owner, node.attr, None) if inspect.ismodule(owner) else None
    return value if inspect.isclass(value) else None
