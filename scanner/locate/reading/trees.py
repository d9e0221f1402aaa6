"""Syntax trees of source files, parsed once, and the places of classes and functions in them."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "definition",
    "dotted",
    "flat",
    "function_node",
    "imports",
    "is_main_guard",
    "parsed",
    "read_source",
    "root_name",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_source(path: Path) -> str:
    """The text of a Python file, decoded as Python would.

    Raises `OSError` when it cannot be read, `SyntaxError` or `UnicodeDecodeError` when it is no
    text.
    """
    import tokenize

    with tokenize.open(path) as file:
        return file.read()


@functools.lru_cache(maxsize=256)
def parsed(path: str) -> ast.Module | None:
    """The tree of a file, or None when it is missing or no Python."""
    try:
        return ast.parse(read_source(Path(path)), filename=path)
    except (OSError, SyntaxError, ValueError):
        return None


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for an attribute chain on a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def root_name(node: ast.AST) -> str | None:
    """The name that a chain of attributes, subscripts and calls starts from."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def imports(tree: ast.AST) -> dict[str, str]:
    """Local name to dotted origin for every import in the tree; relative ones keep their dots."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                joint = "" if base.endswith(".") else "."
                found[alias.asname or alias.name] = f"{base}{joint}{alias.name}"
    return found


def is_main_guard(node: ast.AST) -> bool:
    """Whether the statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def flat(body: list[ast.stmt], *, guards: bool = True) -> Iterator[ast.stmt]:
    """Statements in order, those of nested blocks after the block that holds them.

    Bodies of functions and classes are not entered; main guards only when `guards` is true.
    """
    for statement in body:
        yield statement
        if isinstance(statement, Function | ast.ClassDef):
            continue
        if not guards and is_main_guard(statement):
            continue
        for block in ("body", "handlers", "orelse", "finalbody"):
            inner = getattr(statement, block, [])
            for part in inner:
                if isinstance(part, ast.ExceptHandler):
                    yield from flat(part.body, guards=guards)
            yield from flat([p for p in inner if isinstance(p, ast.stmt)], guards=guards)
        for case in getattr(statement, "cases", []):
            yield from flat(case.body, guards=guards)


def definition(target: Any) -> ast.ClassDef | Function | None:
    """The node that defines a class or function, when its source file can be read."""
    target = inspect.unwrap(target) if callable(target) else target
    module = sys.modules.get(getattr(target, "__module__", None) or "")
    path = getattr(module, "__file__", None)
    code = getattr(target, "__code__", None)
    if code is not None:
        path = code.co_filename
    tree = parsed(path) if path else None
    if tree is None:
        return None
    return _walk_qualname(tree, target.__qualname__, getattr(code, "co_firstlineno", None))


def _walk_qualname(
    tree: ast.Module, qualname: str, line: int | None
) -> ast.ClassDef | Function | None:
    body: list[ast.stmt] = tree.body
    node: ast.ClassDef | Function | None = None
    for part in qualname.replace(".<locals>", "").split("."):
        named = [
            statement
            for statement in flat(body)
            if isinstance(statement, Function | ast.ClassDef) and statement.name == part
        ]
        if not named:
            return None
        exact = [n for n in named if line in {n.lineno, *(d.lineno for d in n.decorator_list)}]
        node = (exact or named)[-1]
        body = node.body
    return node


def function_node(function: Any) -> Function | None:
    """The definition of a plain function or method; None for lambdas, C code and classes."""
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function):
        return None
    node = definition(function)
    return node if isinstance(node, Function) else None
