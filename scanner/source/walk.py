"""One walk over a file that tells every rule what it listens to.

The stack is a list of its own: expressions may be nested deeper than Python's recursion allows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from scanner.source.here import Here
from scanner.source.interface import Hit, SourceRule
from scanner.source.listeners import Listeners
from scanner.source.names import Scope

__all__ = ["walk"]

Found = Iterator[tuple[SourceRule, Hit]]

_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "level", "type_comment"})
_PARTS: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in kind._fields if field not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""Node type → fields in which nodes are."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WITHIN: dict[type, tuple[str, ...]] = {
    **{kind: ("generators", *_PARTS[kind]) for kind in _COMPREHENSIONS},
    ast.FunctionDef: ("body",),
    ast.AsyncFunctionDef: ("body",),
    ast.ClassDef: ("body",),
    ast.Lambda: ("body",),
}
"""Scopes → the fields that are inside them: decorators and defaults are not."""


def walk(here: Here, listeners: Listeners) -> Found:
    """Hits of every rule in one file, in the order of nodes. `here` stands at the module."""
    tree = here.module.tree
    stack: list[ast.AST | _Step] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, _Step):
            node.take(here)
            continue
        here.path.append(node)
        yield from _heard(node, here, listeners)
        if type(node) in _WITHIN:
            here.path.pop()
            _push_scope(node, stack)
        else:
            stack.append(_UP)
            _push(stack, _children(node, _PARTS[type(node)]))


class _Step:
    """What is to be done between two nodes."""

    def take(self, here: Here) -> None:
        """Move to where the next node stands."""
        here.path.pop()


class _Enter(_Step):
    def __init__(self, node: ast.AST) -> None:
        self.node = node

    def take(self, here: Here) -> None:
        here.path.append(self.node)
        outer = here.scopes[-1]
        here.scopes.append(Scope(self.node, outer, here.module.globals))


class _Exit(_Step):
    def take(self, here: Here) -> None:
        here.path.pop()
        here.scopes.pop()


_UP = _Step()
_EXIT = _Exit()


def _push_scope(node: ast.AST, stack: list[ast.AST | _Step]) -> None:
    """Decorators, defaults and bases belong to the scope around."""
    within = _WITHIN[type(node)]
    around = tuple(field for field in _PARTS[type(node)] if field not in within)
    stack.append(_EXIT)
    _push(stack, _children(node, within))
    stack.append(_Enter(node))
    _push(stack, _children(node, around))


def _push(stack: list[ast.AST | _Step], nodes: list[ast.AST]) -> None:
    nodes.reverse()
    stack.extend(nodes)


def _children(node: ast.AST, fields: Iterable[str]) -> list[ast.AST]:
    found: list[ast.AST] = []
    for field in fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif type(value) is list:
            found.extend(each for each in value if isinstance(each, ast.AST))
    return found


def _heard(node: ast.AST, here: Here, listeners: Listeners) -> Found:
    if (rules := listeners.nodes.get(type(node))) is not None:
        yield from _told(rules, "", node, here)
    if isinstance(node, ast.Call):
        yield from _call(node, here, listeners)
    elif isinstance(node, (ast.Attribute, ast.Name)):
        yield from _name(node, here, listeners)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from _import(node, here, listeners)


def _call(node: ast.Call, here: Here, listeners: Listeners) -> Found:
    qualified = here.resolve(node.func)
    if qualified is not None:
        yield from _told(listeners.of_call(qualified), qualified, node, here)
    elif isinstance(node.func, ast.Attribute):
        method = node.func.attr
        yield from _told(listeners.method.get(method, ()), method, node, here)


def _name(node: ast.Attribute | ast.Name, here: Here, listeners: Listeners) -> Found:
    if not isinstance(node.ctx, ast.Load) or (qualified := here.resolve(node)) is None:
        return
    longest = not isinstance(here.parent, ast.Attribute)
    yield from _told(listeners.of_name(qualified, longest=longest), qualified, node, here)


def _import(node: ast.Import | ast.ImportFrom, here: Here, listeners: Listeners) -> Found:
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    for alias in node.names:
        here.path.append(alias)
        name = module + alias.name
        yield from _told(listeners.of_import(name), name, alias, here)
        here.path.pop()


def _told(rules: Iterable[SourceRule], name: str, node: ast.AST, here: Here) -> Found:
    for rule in rules:
        here.name = name
        found = rule.check(node, here)
        if found is None:
            continue
        for hit in [found] if isinstance(found, Hit) else found:
            yield rule, hit
