"""Constants, containers, attributes and arithmetic of an expression tree, evaluated."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

__all__ = ["Expressions", "Unresolved"]

_DEPTH = 40

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}


class Unresolved(Exception):  # noqa: N818 - an answer, not an error
    """The expression depends on something that only running the user's code would tell."""


class Expressions:
    """Evaluates expressions without names and calls; subclasses add those.

    A handler is a method named after the node, `_of_binop`; whatever has none is unresolved.
    """

    def __init__(self) -> None:
        self._depth = 0

    def of(self, node: ast.expr) -> Any:
        """The expression's value; raises `Unresolved`."""
        if self._depth > _DEPTH:
            raise Unresolved("nested too deeply")
        handler = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Unresolved(ast.unparse(node))
        self._depth += 1
        try:
            return handler(node)
        except (Unresolved, KeyboardInterrupt):
            raise
        except Exception as error:
            raise Unresolved(f"{ast.unparse(node)}: {error}") from error
        finally:
            self._depth -= 1

    def get(self, node: ast.expr | None, default: Any = None) -> Any:
        """The expression's value, or `default` when it is unresolved."""
        try:
            return default if node is None else self.of(node)
        except Unresolved:
            return default

    def _of_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _of_tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._elements(node.elts))

    def _of_list(self, node: ast.List) -> Any:
        return self._elements(node.elts)

    def _of_set(self, node: ast.Set) -> Any:
        return set(self._elements(node.elts))

    def _elements(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(self.of(node.value))
            else:
                found.append(self.of(node))
        return found

    def _of_dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.of(value))
            else:
                found[self.of(key)] = self.of(value)
        return found

    def _of_binop(self, node: ast.BinOp) -> Any:
        return _BINARY[type(node.op)](self.of(node.left), self.of(node.right))

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self.of(node.operand))

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        return self.of(node.body if self.of(node.test) else node.orelse)

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        wanted = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.of(part)
            if bool(value) == wanted:
                break
        return value

    def _of_compare(self, node: ast.Compare) -> Any:
        left = self.of(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.of(part)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _of_subscript(self, node: ast.Subscript) -> Any:
        return self.of(node.value)[self.of(node.slice)]

    def _of_slice(self, node: ast.Slice) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.of(part) for part in parts))

    def _of_attribute(self, node: ast.Attribute) -> Any:
        return getattr(self.of(node.value), node.attr)
