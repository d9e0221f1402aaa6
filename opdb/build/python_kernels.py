"""Kernels that a release registers for MPS from Python, when torch is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["FILE", "KEY", "python_kernels"]

FILE = "torch/backends/mps/__init__.py"
KEY = "MPS.python"
"""How the data tell these from the kernels of the library; they come later and so win."""


def python_kernels(source: str) -> frozenset[str]:
    """Overloads that `Library.impl(name, function, "MPS")` is called for, plain names.

    ValueError when such a call names its overload other than by a literal.
    """
    return frozenset(_names(ast.parse(source)))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "impl" and len(node.args) == 3 and _literal(node.args[2]) == "MPS":
            name = _literal(node.args[0])
            if not isinstance(name, str):
                raise ValueError(f"{FILE}:{node.lineno}: an operator is registered by expression")
            yield name


def _literal(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
