"""What is known to be true, or false, where a node stands: `if`, `and`, early returns."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeGuard, TypeVar

__all__ = ["Condition", "Guards", "conditions", "denies"]

NodeT = TypeVar("NodeT", bound=ast.AST)
Guards: TypeAlias = dict[tuple[ast.AST, str], list[ast.If]]
"""A node and the name of a block in it → its `if`s that end in a `return` or the like."""
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ENDS = frozenset({"exit", "_exit", "quit", "skip", "skipTest"})
"""Functions that do not come back."""


class Condition(NamedTuple):
    """An expression that has been tested; never an `and`, `or` or `not` whose parts are known."""

    test: ast.expr
    holds: bool


def conditions(path: Sequence[ast.AST], guards: Guards) -> Iterator[Condition]:
    """Conditions under which the last node of a path from the module down is reached.

    Loops and functions between do not end a condition: what was tested outside is assumed to hold
    within. `guards` remembers, for one file, which statements of a block may leave it.
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
        yield from _returned_before(parent, child, guards)


def denies(test: ast.expr) -> bool:
    """Whether a test is true of all but what it names: `device.type != "cuda"`."""
    operators = test.ops if isinstance(test, ast.Compare) else []
    return any(isinstance(each, ast.NotEq | ast.NotIn) for each in operators)


def _branch(
    test: ast.expr, child: ast.AST, body: Sequence[ast.AST], orelse: Sequence[ast.AST]
) -> Iterator[Condition]:
    if _among(child, body):
        yield from _parts(test, True)
    elif _among(child, orelse):
        yield from _parts(test, False)


def _returned_before(parent: ast.AST, child: ast.AST, guards: Guards) -> Iterator[Condition]:
    """`if not available: return` in front of a statement of the same block."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and isinstance(child, ast.stmt) and _among(child, block):
            if (parent, field) not in guards:
                guards[parent, field] = [each for each in block if _leaves(each)]
            for guard in _before(guards[parent, field], child):
                yield from _parts(guard.test, False)


def _leaves(statement: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and (
        isinstance(statement.body[-1], _LEAVES) or _ends(statement.body[-1])
    )


def _ends(statement: ast.stmt) -> bool:
    """`sys.exit()`, `pytest.skip("no GPU")`, `self.skipTest("no GPU")`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in _ENDS
    return False


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
    if not isinstance(child, ast.stmt):
        return any(node is child for node in nodes)
    place = bisect_left(nodes, _position(child), key=_position)
    return place < len(nodes) and nodes[place] is child


def _before(nodes: Sequence[NodeT], child: ast.AST) -> Sequence[NodeT]:
    """Those of a block, or of an `and`, that stand before one of them: nodes stand in order."""
    return nodes[: bisect_left(nodes, _position(child), key=_position)]


def _position(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, (ast.stmt, ast.expr))
    return node.lineno, node.col_offset
