"""A model's file and the user's own modules that it imports, found without running anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from scanner.source.decode import UndecodableError, decode
from scanner.source.module import Module

__all__ = ["with_local_imports"]

_LIMIT = 500
"""Files: more belong to no one model."""


def with_local_imports(files: Iterable[Path], cwd: Path) -> list[Path]:
    """The files, then modules that they import, and so on, each once.

    A module is the user's own when it lies beside the file that imports it, or below the working
    directory: installed packages are in neither.
    """
    found = dict.fromkeys(files)
    pending = list(found)
    while pending and len(found) < _LIMIT:
        for path in _imported(pending.pop(0), cwd):
            if path not in found:
                found[path] = None
                pending.append(path)
    return list(found)


def _imported(path: Path, cwd: Path) -> Iterator[Path]:
    try:
        tree = Module(decode(path.read_bytes())).tree
    except (OSError, UndecodableError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # whoever judges it says so
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules([path.parent, cwd], alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            roots = [path.parents[node.level - 1]] if node.level else [path.parent, cwd]
            for alias in node.names:
                yield from _modules(roots, [*parts, alias.name])


def _modules(roots: Iterable[Path], parts: list[str]) -> Iterator[Path]:
    """Files of a dotted name and of the packages around it; the last part may be no module."""
    for root in roots:
        known = [file for file in _along(root, parts) if file.is_file()]
        if known:
            yield from known
            return


def _along(root: Path, parts: list[str]) -> Iterator[Path]:
    place = root
    for part in parts:
        place = place / part
        yield place / "__init__.py"
        yield place.with_name(f"{part}.py")
