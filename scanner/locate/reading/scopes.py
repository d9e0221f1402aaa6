"""The functions of a file as flat lists of statements, with what each name is assigned from."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from scanner.locate.reading.trees import Function, flat

__all__ = ["Scope", "argparse_defaults", "calls_in", "header", "homes", "scopes"]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One function, method or the module body."""

    name: str
    """`main`, `Trainer.fit`, or empty for the module body."""
    owner: str = ""
    """The class, for a method."""
    statements: tuple[ast.stmt, ...]
    """In order, nested blocks flattened. In methods of plain classes `self.x` is one name."""
    params: dict[str, ast.arg] = field(default_factory=dict)
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    assigned: dict[str, list[ast.expr | None]] = field(default_factory=dict)
    """Name to the expressions it is assigned from; None for what has no single expression."""


def scopes(tree: ast.Module, modules: frozenset[str]) -> list[Scope]:
    """Every scope of a file, in order; `modules` are its module classes, whose self is a model."""
    found = [_scope("", tree.body)]
    for node, owner, outer in _functions(tree.body, "", None):
        body = node.body
        if owner and owner not in modules:
            body = [_SelfNames().visit(copy.deepcopy(statement)) for statement in body]
        name = f"{owner}.{node.name}" if owner else node.name
        scope = _scope(name, body, owner, node.args)
        found.append(scope if outer is None else _enclosed(scope, outer))
    return [_with_siblings(scope, found, modules) for scope in found]


def _functions(
    body: list[ast.stmt], owner: str, outer: Function | None
) -> Iterator[tuple[Function, str, Function | None]]:
    for statement in flat(body):
        if isinstance(statement, Function):
            yield statement, owner, outer
            yield from _functions(statement.body, "", statement)
        elif isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body, statement.name, None)


def _enclosed(scope: Scope, outer: Function) -> Scope:
    """Adds the names of the function around a nested one."""
    around = _scope("", outer.body, "", outer.args)
    return dataclasses.replace(
        scope,
        params=around.params | scope.params,
        defaults=around.defaults | scope.defaults,
        assigned=around.assigned | scope.assigned,
    )


def _scope(
    name: str, body: list[ast.stmt], owner: str = "", args: ast.arguments | None = None
) -> Scope:
    statements = tuple(flat(body))
    return Scope(
        name=name,
        owner=owner,
        statements=statements,
        params={} if args is None else {arg.arg: arg for arg in _all_args(args)},
        defaults={} if args is None else _defaults(args),
        assigned=_assigned(statements),
    )


def _all_args(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def _defaults(args: ast.arguments) -> dict[str, ast.expr]:
    positional = [*args.posonlyargs, *args.args]
    found = {
        arg.arg: value
        for arg, value in zip(reversed(positional), reversed(args.defaults), strict=False)
    }
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found


def _assigned(statements: tuple[ast.stmt, ...]) -> dict[str, list[ast.expr | None]]:
    found: dict[str, list[ast.expr | None]] = {}
    for statement in statements:
        for name, value in _bindings(statement):
            found.setdefault(name, []).append(value)
    return found


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _bind(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _bind(statement.target, statement.value)
    elif isinstance(statement, ast.AugAssign | ast.For | ast.AsyncFor):
        yield from _bind(statement.target, None)
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from _bind(item.optional_vars, None)


def _bind(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        pairs: list[ast.expr | None] = [None] * len(target.elts)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(pairs):
            pairs = list(value.elts)
        for part, expression in zip(target.elts, pairs, strict=True):
            yield from _bind(part, expression)


def _with_siblings(scope: Scope, all_scopes: list[Scope], modules: frozenset[str]) -> Scope:
    """Adds what other methods of the same plain class assign to `self.x`."""
    if not scope.owner or scope.owner in modules:
        return scope
    merged = dict(scope.assigned)
    for other in all_scopes:
        if other.owner == scope.owner and other is not scope:
            for name, values in other.assigned.items():
                if name.startswith("self."):
                    merged.setdefault(name, []).extend(values)
    return dataclasses.replace(scope, assigned=merged)


def homes(scope: Scope, name: str, all_scopes: list[Scope]) -> list[Scope]:
    """Scopes whose names an assignment to `name` may use: for `self.x` all methods of the class."""
    if not name.startswith("self.") or not scope.owner:
        return [scope]
    return [other for other in all_scopes if other.owner == scope.owner]


class _SelfNames(ast.NodeTransformer):
    """Makes `self.x` one name, so that attributes of a trainer are followed like variables."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return ast.copy_location(ast.Name(id=f"self.{node.attr}", ctx=node.ctx), node)
        return node


def header(statement: ast.stmt) -> list[ast.AST]:
    """The parts of a statement that are not nested statements."""
    return [
        child
        for child in ast.iter_child_nodes(statement)
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
    ]


def calls_in(scope: Scope) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """Every call of the scope with its statement; definitions inside it are not entered."""
    for statement in scope.statements:
        if isinstance(statement, Function | ast.ClassDef):
            continue
        for part in header(statement):
            for node in ast.walk(part):
                if isinstance(node, ast.Call):
                    yield statement, node


def argparse_defaults(tree: ast.Module) -> dict[str, ast.expr]:
    """Destination to default expression of every `add_argument` call that has a default."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "add_argument":
            continue
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        name = _destination(node.args, keywords.get("dest"))
        action = keywords.get("action")
        default = keywords.get("default")
        if default is None and isinstance(action, ast.Constant):
            flags = {"store_true": False, "store_false": True}
            if action.value in flags:
                default = ast.Constant(flags[action.value])
        if name and default is not None:
            found[name] = default
    return found


def _destination(args: list[ast.expr], dest: ast.expr | None) -> str | None:
    if isinstance(dest, ast.Constant):
        return str(dest.value)
    names = [str(arg.value) for arg in args if isinstance(arg, ast.Constant)]
    long = [name for name in names if name.startswith("--")] or names
    return long[0].lstrip("-").replace("-", "_") if long else None
