"""A parsed file: its tree, and places in it as a reader counts them."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from scanner.source.interface import Span

__all__ = ["Module"]

_LINE_END = re.compile(r"\r\n|\r|\n")
"""What Python ends lines at; `str.splitlines` also does so at form feeds and others."""


class Module:
    """One source file, parsed. Raises `SyntaxError` for what is no Python."""

    def __init__(self, text: str, file: str = "<string>") -> None:
        self.text = text
        """Decoded, without a byte order mark."""
        self.file = file
        """Relative to the working directory where possible, `/` as separator."""
        self.tree = _parsed(text)

    @cached_property
    def lines(self) -> list[str]:
        """Without their ends."""
        return _LINE_END.split(self.text)

    @cached_property
    def globals(self) -> frozenset[str]:
        """Names that a function declares `global`: more than one scope assigns them."""
        if "global " not in self.text:
            return frozenset()
        found = (node.names for node in ast.walk(self.tree) if isinstance(node, ast.Global))
        return frozenset(name for names in found for name in names)

    def span(self, node: ast.AST) -> Span:
        """Where a node stands; the first character for nodes without a place."""
        line: int | None = getattr(node, "lineno", None)
        if line is None:
            return Span(1, 1, 1, 1)
        end: int = getattr(node, "end_lineno", None) or line
        column: int = getattr(node, "col_offset", 0)
        end_column: int | None = getattr(node, "end_col_offset", None)
        return Span(
            line,
            self._column(line, column),
            end,
            self._column(end, column if end_column is None else end_column),
        )

    def source(self, node: ast.AST) -> str:
        """The text of a node, as written."""
        return self.slice(self.span(node))

    def slice(self, span: Span) -> str:
        """The text of a range; lines are joined by `\\n`."""
        lines = self.lines[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return "\n".join(lines)

    def _column(self, line: int, offset: int) -> int:
        """1-based and in characters, from an offset in UTF-8."""
        text = self.lines[line - 1]
        return offset + 1 if text.isascii() else len(text.encode()[:offset].decode()) + 1


def _parsed(text: str) -> ast.Module:
    """The tree of a file. Warnings about its literals are its own business."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
