"""What names mean: imports, aliases, and variables that are assigned once.

A scope's bindings are collected when the first name is looked up in it, from its statements alone.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

__all__ = ["SCOPES", "Binding", "Scope", "chain"]

Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (
    *(*Function, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_BUILTINS = frozenset(dir(builtins))


class Binding(NamedTuple):
    """What a name stands for; neither an import nor an expression when opscan cannot tell."""

    imported: str = ""
    """Qualified: `torch.cuda.amp`. Relative imports begin with dots."""
    value: ast.expr | None = None
    """What it is assigned, where that happens once."""


OPAQUE = Binding()


class Scope:
    """The names of one module, class, function, lambda or comprehension."""

    def __init__(self, node: ast.AST, outer: Scope | None, shared: frozenset[str]) -> None:
        self.node = node
        self.outer = outer
        self._shared = shared

    @property
    def is_class(self) -> bool:
        """Whether scopes within do not see its names."""
        return isinstance(self.node, ast.ClassDef)

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        """Name → what it stands for."""
        every: dict[str, list[Binding]] = {}
        for name, binding in _bound_by(self.node):
            every.setdefault(name, []).append(binding)
        module = isinstance(self.node, ast.Module)
        return {
            name: OPAQUE if module and name in self._shared else _merged(found)
            for name, found in every.items()
            if module or name not in self._shared
        }

    def find(self, name: str) -> tuple[Binding, Scope] | None:
        """The binding that a name has here, and the scope that it belongs to."""
        scope: Scope | None = self
        while scope is not None:
            if (scope is self or not scope.is_class) and name in scope.bindings:
                return scope.bindings[name], scope
            scope = scope.outer
        return None

    def resolve(self, node: ast.AST, depth: int = 8) -> str | None:
        """The qualified name of an expression: `t.cuda` is `torch.cuda` after `import torch as t`.

        None for what is not a chain of attributes that begins at an import.
        """
        root, attributes = chain(node)
        if root is None or not depth:
            return None
        if (found := self.find(root)) is None:
            base = f"builtins.{root}" if root in _BUILTINS else None
        else:
            binding, scope = found
            value = binding.value
            base = binding.imported or (scope.resolve(value, depth - 1) if value else None)
        return ".".join([base, *attributes]) if base else None

    def value(self, node: ast.expr, depth: int = 8) -> ast.expr:
        """What a name was assigned, where that is the only assignment; else the node itself."""
        if not isinstance(node, ast.Name) or not depth or (found := self.find(node.id)) is None:
            return node
        binding, scope = found
        return node if binding.value is None else scope.value(binding.value, depth - 1)


def chain(node: ast.AST) -> tuple[str | None, list[str]]:
    """`a.b.c` as its root name and attributes; no root for anything else."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else None), attributes[::-1]


def _merged(found: list[Binding]) -> Binding:
    """One meaning for several bindings, when they agree; a `None` beside others does not count."""
    told = [each for each in found if not _is_none(each)] or found
    if len(told) == 1 or all(each.imported == told[0].imported != "" for each in told):
        return told[0]
    return OPAQUE


def _is_none(binding: Binding) -> bool:
    return isinstance(binding.value, ast.Constant) and binding.value.value is None


def _bound_by(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, Function):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        yield from ((each.arg, OPAQUE) for each in every)
    for generator in getattr(node, "generators", ()):
        yield from _targets(generator.target)
    body = getattr(node, "body", ())
    if isinstance(body, list):
        yield from _in_block(body)


def _in_block(block: Iterable[ast.AST]) -> Iterator[tuple[str, Binding]]:
    """Bindings of statements and of the blocks in them, but not of scopes within."""
    waiting = [*block][::-1]
    while waiting:  # no recursion: every `elif` is a block in the block before
        statement = waiting.pop()
        yield from _of_statement(statement)
        if isinstance(statement, (*Function, ast.ClassDef)):
            continue
        for field in ("finalbody", "cases", "handlers", "orelse", "body"):
            waiting.extend(reversed(getattr(statement, field, ())))


def _of_statement(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _imported(node)
        case ast.Assign():
            for target in node.targets:
                yield from _assigned(target, node.value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _assigned(target, value)
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _targets(target)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                yield from _targets(item.optional_vars)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, OPAQUE
        case ast.ExceptHandler(name=str() as name):
            yield name, OPAQUE
        case ast.match_case(pattern=pattern):
            for part in ast.walk(pattern):
                if captured := getattr(part, "name", None) or getattr(part, "rest", None):
                    yield captured, OPAQUE


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Binding]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            bound = alias.asname or alias.name.partition(".")[0]
            yield bound, Binding(alias.name if alias.asname else bound)
        else:
            module = "." * node.level + (f"{node.module}." if node.module else "")
            yield alias.asname or alias.name, Binding(module + alias.name)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, Binding(value=value)
    elif (
        isinstance(target, ast.Tuple)
        and isinstance(value, ast.Tuple)
        and len(target.elts) == len(value.elts)
    ):
        for each, part in zip(target.elts, value.elts, strict=True):
            yield from _assigned(each, part)
    else:
        yield from _targets(target)


def _targets(target: ast.AST | None) -> Iterator[tuple[str, Binding]]:
    for node in ast.walk(target) if target is not None else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, OPAQUE
