"""What is known to be true, or false, where a node stands: `if`, `and`, early returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

__all__ = ["Condition", "conditions"]

NodeT = TypeVar("NodeT", bound=ast.AST)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Condition(NamedTuple):
    """An expression that has been tested; never an `and`, `or` or `not` whose parts are known."""

    test: ast.expr
    holds: bool


def conditions(path: Sequence[ast.AST]) -> Iterator[Condition]:
    """Conditions under which the last node of a path from the module down is reached.

    Loops and functions between do not end a condition: what was tested outside is assumed to hold
    within.
    """
    for parent, child in pairwise(path):
        match parent:
            case ast.If() | ast.While():
                yield from _branch(parent.test, child, parent.body, parent.orelse)
            case ast.IfExp():
                yield from _branch(parent.test, child, [parent.body], [parent.orelse])
            case ast.BoolOp():
                for earlier in _before(parent.values, child):
                    yield from _parts(earlier, isinstance(parent.op, ast.And))
        yield from _returned_before(parent, child)


def _branch(
    test: ast.expr, child: ast.AST, body: Sequence[ast.AST], orelse: Sequence[ast.AST]
) -> Iterator[Condition]:
    if _among(child, body):
        yield from _parts(test, True)
    elif _among(child, orelse):
        yield from _parts(test, False)


def _returned_before(parent: ast.AST, child: ast.AST) -> Iterator[Condition]:
    """`if not available: return` in front of a statement of the same block."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and _among(child, block):
            for statement in _before(block, child):
                if isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVES):
                    yield from _parts(statement.test, False)


def _parts(test: ast.expr, holds: bool) -> Iterator[Condition]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _parts(operand, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            for value in values:
                yield from _parts(value, holds)
        case _:
            yield Condition(test, holds)


def _among(child: ast.AST, nodes: Sequence[ast.AST]) -> bool:
    return any(node is child for node in nodes)


def _before(nodes: Sequence[NodeT], child: ast.AST) -> Iterator[NodeT]:
    for node in nodes:
        if node is child:
            return
        yield node
