"""What an expression of the user's file is worth, found without running the user's functions.

Constants, names, attributes, arithmetic and containers are evaluated, and calls that only build
something: module classes, dataclasses, losses, a few builtins. Whatever else an expression needs
makes it unresolved.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from scanner.locate.reading.expressions import Expressions, Unresolved
from scanner.locate.reading.makers import (
    BUILTINS,
    called_name,
    is_kept_by,
    is_refined,
    is_wrapper,
    only_builds,
)
from scanner.locate.reading.scopes import Scope, argparse_defaults, calls_in, homes
from scanner.locate.reading.trees import root_name

__all__ = ["Unresolved", "Values"]


class Values(Expressions):
    """Evaluates expressions of one scope; `bound` names take precedence over everything."""

    def __init__(
        self,
        scope: Scope,
        namespace: Mapping[str, Any],
        tree: ast.Module,
        all_scopes: list[Scope],
        bound: Mapping[str, Any] | None = None,
        *,
        builds: bool = True,
    ) -> None:
        super().__init__()
        self.scope = scope
        self.namespace = namespace
        self.bound = dict(bound or {})
        self._tree = tree
        self._scopes = all_scopes
        self._open: set[str] = set()
        self._builds = builds

    def _of_scope(self, scope: Scope) -> Values:
        """The same in another scope of the file."""
        other = Values(
            scope, self.namespace, self._tree, self._scopes, self.bound, builds=self._builds
        )
        other._depth = self._depth + 1
        return other

    def target(self, node: ast.expr) -> Any:
        """What a call calls, found without making anything; None when it is unresolved."""
        other = self._of_scope(self.scope)
        other._builds = False
        return other.get(node)

    def _of_name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.bound:
            return self.bound[name]
        if name in self._open:
            raise Unresolved(name)
        self._open.add(name)
        try:
            return self._look_up(name)
        finally:
            self._open.discard(name)

    def _look_up(self, name: str) -> Any:
        """Own assignments, then parameters, then the module as it ran, then its guarded part."""
        is_module_body = not self.scope.name
        if not is_module_body:
            for values in (self._assigned, self._parameter):
                try:
                    return values(name)
                except Unresolved:
                    local = name in self.scope.assigned and name not in self.scope.params
                    if local and values is self._assigned:
                        raise
        if name in self.namespace:
            return self.namespace[name]
        if is_module_body:
            return self._assigned(name)
        if name in BUILTINS:
            return getattr(builtins, name)
        return self._of_scope(self._scopes[0])._assigned(name)

    def _assigned(self, name: str) -> Any:
        for value in self.scope.assigned.get(name, []):
            if value is None or is_refined(value, name):
                continue
            for home in homes(self.scope, name, self._scopes):
                try:
                    return (self if home is self.scope else self._of_scope(home)).of(value)
                except Unresolved:
                    continue
        if name in BUILTINS and name not in self.scope.assigned:
            return getattr(builtins, name)
        raise Unresolved(name)

    def _parameter(self, name: str) -> Any:
        arg = self.scope.params.get(name)
        if arg is None:
            raise Unresolved(name)
        passed = self._passed(name)
        if passed is not None:
            return passed[0]
        annotation = self.get(arg.annotation)
        if inspect.isclass(annotation) and dataclasses.is_dataclass(annotation):
            return annotation()
        if name in self.scope.defaults:
            return self.of(self.scope.defaults[name])
        defaults = argparse_defaults(self._tree)
        if defaults and name in {"args", "opt", "opts", "hparams", "config", "cfg", "flags"}:
            return self._parsed_args()
        raise Unresolved(name)

    def _passed(self, name: str) -> tuple[Any] | None:
        """What the file's own call of this function passes, in a tuple; None when unresolved."""
        positions = [param for param in self.scope.params if param != "self"]
        function = self.scope.name.rpartition(".")[2]
        if function == "__init__":
            function = self.scope.owner
        for scope in self._scopes:
            for _, call in calls_in(scope) if scope.name != self.scope.name else ():
                if called_name(call) != function:
                    continue
                arguments = dict(zip(positions, call.args, strict=False))
                arguments |= {k.arg: k.value for k in call.keywords if k.arg is not None}
                if name in arguments:
                    try:
                        return (self._of_scope(scope).of(arguments[name]),)
                    except Unresolved:
                        continue
        return None

    def _parsed_args(self) -> SimpleNamespace:
        module = self._of_scope(self._scopes[0])
        found = SimpleNamespace()
        for name, default in argparse_defaults(self._tree).items():
            try:
                setattr(found, name, module.of(default))
            except Unresolved:
                continue
        return found

    def _of_call(self, node: ast.Call) -> Any:
        name = called_name(node)
        if name == "parse_known_args":
            return self._parsed_args(), []
        if name == "parse_args" or self._parses(name):
            return self._parsed_args()
        if is_wrapper(name) and node.args:
            return self.of(node.args[0])
        if name in {"is_available", "is_built"} and root_name(node.func) == "torch":
            return self.of(node.func)()
        if isinstance(node.func, ast.Attribute) and is_kept_by(node.func):
            owner = self.of(node.func.value)
            if isinstance(owner, torch.nn.Module):
                return owner
        return self._build(self.of(node.func), node)

    def _parses(self, name: str) -> bool:
        """Whether a function of the file returns the parsed command line."""
        return any(
            called_name(call) == "parse_args"
            for scope in self._scopes
            if scope.name == name
            for statement, call in calls_in(scope)
            if isinstance(statement, ast.Return | ast.Assign)
        )

    def _build(self, function: Any, node: ast.Call) -> Any:
        if not self._builds or not only_builds(function):
            raise Unresolved(ast.unparse(node))
        args, kwargs = self.arguments(node)
        return function(*args, **kwargs)

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """The evaluated arguments of a call; raises `Unresolved`."""
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.of(keyword.value)
            if keyword.arg is None:
                kwargs.update(value)
            else:
                kwargs[keyword.arg] = value
        return self._elements(node.args), kwargs
