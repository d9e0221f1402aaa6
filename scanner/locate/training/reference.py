"""Which names of a file's functions stand for the model that is being built."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from scanner.locate.context import Context, is_module_class
from scanner.locate.reading.makers import unwrapped_call
from scanner.locate.reading.scopes import Scope, calls_in
from scanner.locate.reading.trees import root_name

__all__ = ["Reference"]

_GENERIC = frozenset({"model", "net", "network", "module", "nn_model", "the_model", "m"})
_DEPTH = 6


class Reference:
    """Tells whether an expression refers to one model, made by `maker` (a class or a factory)."""

    def __init__(self, context: Context, model: Any, maker: Any, global_name: str = "") -> None:
        self.context = context
        self.model = model
        self._maker = maker
        self._global_name = global_name
        self._known: dict[tuple[str, str], bool] = {}
        self._own_names = _GENERIC | {type(model).__name__.lower(), _snake(type(model).__name__)}

    def is_model(self, scope: Scope, node: ast.AST) -> bool:
        """Whether the node is a name of the model in that scope, perhaps below `.module`."""
        if isinstance(node, ast.Attribute) and node.attr in {"module", "_orig_mod"}:
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        return self._is_name(scope, node.id, _DEPTH)

    def mentions(self, scope: Scope, node: ast.AST, depth: int = 3) -> bool:
        """Whether an expression uses the model, directly or through assigned names."""
        for part in ast.walk(node):
            if self.is_model(scope, part):
                return True
            if depth and isinstance(part, ast.Name):
                values = scope.assigned.get(part.id, [])
                if any(v is not None and self.mentions(scope, v, depth - 1) for v in values):
                    return True
        return False

    def _is_name(self, scope: Scope, name: str, depth: int) -> bool:
        key = (scope.name, name)
        if key not in self._known:
            self._known[key] = False
            self._known[key] = depth > 0 and self._decide(scope, name, depth)
        return self._known[key]

    def _decide(self, scope: Scope, name: str, depth: int) -> bool:
        if name == "self":
            return scope.owner in {cls.__name__ for cls in type(self.model).__mro__}
        values = [value for value in scope.assigned.get(name, []) if value is not None]
        values = [value for value in values if root_name(value) != name]
        homes = self.context.homes(scope, name)
        made = [self._is_made_by(home, value, depth) for home in homes for value in values]
        decided = [answer for answer in made if answer is not None]
        if decided:
            return any(decided)
        if name in scope.params:
            return self._is_passed(scope, name, depth)
        if scope.name and name not in scope.assigned:
            return self._is_global(name, depth)
        return self._is_global(name, depth) if not scope.name else self._sounds_right(name)

    def _is_global(self, name: str, depth: int) -> bool:
        value = self.context.namespace.get(name)
        if isinstance(value, torch.nn.Module):
            return value is self.model or getattr(value, "_orig_mod", None) is self.model
        if value is not None:
            return False
        body = self.context.scopes[0]
        made = [
            self._is_made_by(body, expression, depth)
            for expression in body.assigned.get(name, [])
            if expression is not None
        ]
        decided = [answer for answer in made if answer is not None]
        return any(decided) if decided else self._sounds_right(name)

    def _is_made_by(self, scope: Scope, value: ast.expr, depth: int) -> bool | None:
        """Whether an assigned expression makes our model; None when it cannot be told."""
        inner = unwrapped_call(value)
        if isinstance(inner, ast.Name):
            return self._is_name(scope, inner.id, depth - 1)
        if not isinstance(inner, ast.Call):
            return None
        target = self.context.values(scope).target(inner.func)
        if target is None:
            return None
        if target is self._maker or target is type(self.model):
            return True
        return False if is_module_class(target) else None

    def _is_passed(self, scope: Scope, name: str, depth: int) -> bool:
        """Whether the file's calls of this function pass the model for that parameter."""
        positions = [param for param in scope.params if param != "self"]
        function = scope.name.rpartition(".")[2]
        function = scope.owner if function == "__init__" else function
        answers: list[bool] = []
        for other in self.context.scopes:
            for _, call in calls_in(other):
                if _last_name(call.func) != function:
                    continue
                arguments = dict(zip(positions, call.args, strict=False))
                arguments |= {k.arg: k.value for k in call.keywords if k.arg is not None}
                value = arguments.get(name)
                if isinstance(value, ast.Name):
                    answers.append(self._is_name(other, value.id, depth - 1))
                elif value is not None:
                    answers.append(self._is_made_by(other, value, depth) is True)
        return any(answers) if answers else self._sounds_right(name)

    def _sounds_right(self, name: str) -> bool:
        return name.removeprefix("self.").lower() in self._own_names


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
