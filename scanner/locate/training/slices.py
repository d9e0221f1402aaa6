"""The statements that lead from the model to one expression of the user's file, ready to be run.

A slice keeps the user's line numbers, so whatever runs in it is located in their file.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scanner.locate.reading.scopes import Scope
from scanner.locate.reading.values import Unresolved
from scanner.locate.training.reference import Reference

__all__ = ["OUTPUT", "Slice", "bindings", "cut", "loads"]

OUTPUT = "__opscan_output__"
"""Name that stands for the model's output in a slice."""
_RESULT = "__opscan_result__"


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Assignments in order and the expression that they lead to."""

    statements: tuple[ast.stmt, ...]
    expression: ast.expr
    free: tuple[str, ...]
    """Names that must be given to run it, in order of use; builtins are not among them."""

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line."""
        nodes: list[ast.stmt | ast.expr] = [*self.statements, self.expression]
        return min(n.lineno for n in nodes), max(n.end_lineno or n.lineno for n in nodes)

    def compiled(self, filename: str, namespace: Mapping[str, Any]) -> Callable[..., Any]:
        """A function of keyword arguments for the free names, in the module's namespace."""
        result = ast.Assign(targets=[ast.Name(id=_RESULT, ctx=ast.Store())], value=self.expression)
        ast.copy_location(result, self.expression)
        module = ast.Module(body=[*self.statements, result], type_ignores=[])
        code = compile(ast.fix_missing_locations(module), filename, "exec")

        def run(**given: Any) -> Any:
            space = {**namespace, **given}
            exec(code, space)
            return space[_RESULT]

        return run


def cut(
    scope: Scope,
    before: ast.stmt,
    expression: ast.expr,
    depends: Callable[[ast.AST], bool],
    replace: Callable[[ast.AST], str | None] = lambda _node: None,
) -> Slice:
    """The backward slice of an expression over the statements that depend on the model.

    `depends` tells nodes that are the model; `replace` gives names for nodes that are not to be
    run (the model's call). Of several assignments to a name the last before counts, unless it
    refers to itself.
    """
    live = _dependent(scope, before, depends)
    renamed = _Replace(replace)
    final = renamed.visit(copy.deepcopy(expression))
    needed = loads(final)
    kept: list[ast.stmt] = []
    for statement in reversed(live):
        targets = _targets(statement)
        if not targets & needed:
            continue
        made = renamed.visit(copy.deepcopy(statement))
        reads = loads(made)
        if not isinstance(statement, ast.AugAssign):
            needed -= targets
        needed |= reads
        kept.insert(0, made)
    return Slice(statements=tuple(kept), expression=final, free=_free([*kept, final]))


def _dependent(
    scope: Scope, before: ast.stmt, depends: Callable[[ast.AST], bool]
) -> list[ast.stmt]:
    tainted: set[str] = set()
    live: list[ast.stmt] = []
    for statement in scope.statements:
        if statement is before:
            break
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            continue
        nodes = list(ast.walk(statement))
        if any(depends(node) for node in nodes if _is_stored(node)):
            continue  # makes or moves the model, which exists already
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        if names & tainted or any(depends(node) for node in nodes):
            tainted |= _targets(statement)
            live.append(statement)
    return live


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _targets(statement: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    return {
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    }


def loads(node: ast.AST) -> set[str]:
    """Names that a piece of code reads."""
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def _free(nodes: list[ast.AST]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    stored: set[str] = set()
    for node in nodes:
        local = _comprehension_names(node)
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        for part in sorted(parts, key=lambda part: (part.lineno, part.col_offset)):
            known = part.id in stored or part.id in local or hasattr(builtins, part.id)
            if isinstance(part.ctx, ast.Load) and not known:
                found.setdefault(part.id)
        if isinstance(node, ast.AugAssign):
            found.update(dict.fromkeys(_targets(node) - stored))
        if isinstance(node, ast.stmt):
            stored |= _targets(node)
    return tuple(found)


def _comprehension_names(node: ast.AST) -> set[str]:
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            names |= {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
        elif isinstance(part, ast.Lambda):
            names |= {arg.arg for arg in part.args.args}
    return names


class _Replace(ast.NodeTransformer):
    def __init__(self, replace: Callable[[ast.AST], str | None]) -> None:
        self._replace = replace

    def visit(self, node: ast.AST) -> Any:
        name = self._replace(node)
        if name is None:
            return self.generic_visit(node)
        return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)


def bindings(
    reference: Reference, scope: Scope, names: tuple[str, ...]
) -> tuple[dict[str, Any], list[str]]:
    """Values for free names as far as they are settled, and the names that are not."""
    namespace = reference.context.namespace
    values = reference.context.values(scope)
    bound: dict[str, Any] = {}
    open_names: list[str] = []
    for name in names:
        if name == OUTPUT:
            continue
        node = ast.Name(id=name, ctx=ast.Load())
        if reference.is_model(scope, node):
            bound[name] = reference.model
            continue
        is_local = bool(scope.name) and (name in scope.assigned or name in scope.params)
        if name in namespace and not is_local:
            continue
        try:
            bound[name] = values.of(node)
        except Unresolved:
            open_names.append(name)
    return bound, open_names
