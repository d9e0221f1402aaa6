"""Kernels that a release registers for MPS from Python, when torch is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["FILES", "KEY", "python_kernels"]

FILES = ("torch/backends/mps/__init__.py", "torch/_refs/linalg/__init__.py")
"""What `import torch` runs and that registers kernels for MPS, in some releases."""
KEY = "MPS.python"
"""How the data tell these from the kernels of the library; they come later and so win."""


def python_kernels(source: str) -> frozenset[str]:
    """Overloads that a file registers for MPS, plain names.

    `Library.impl(name, function, "MPS")`, or without the key on a library that is made for MPS.
    ValueError when such a call names its overload other than by a literal.
    """
    return frozenset(_names(ast.parse(source)))


def _names(tree: ast.Module) -> Iterator[str]:
    libraries = set(_libraries(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _registers(node, libraries):
            name = _literal(node.args[0])
            if not isinstance(name, str):
                raise ValueError(f"line {node.lineno}: an operator is registered by expression")
            yield name.removeprefix("aten::")


def _libraries(tree: ast.Module) -> Iterator[str]:
    """Variables that hold a library whose every kernel is for MPS."""
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    for node in assigned:
        made = node.value.args if isinstance(node.value, ast.Call) else []
        if [_literal(argument) for argument in made] == ["aten", "IMPL", "MPS"]:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _registers(call: ast.Call, libraries: set[str]) -> bool:
    method = call.func
    if not (isinstance(method, ast.Attribute) and method.attr == "impl"):
        return False
    if len(call.args) == 3:
        return _literal(call.args[2]) == "MPS"
    return isinstance(method.value, ast.Name) and method.value.id in libraries


def _literal(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
