"""Imports and definitions added below the imports of a file: a codemod of LibCST.

LibCST knows which comments belong to the file and which to a statement, what a docstring is, and
where a block ends. It takes 100 ms to import: nothing but a correction that was made needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import libcst as cst
from libcst.codemod import CodemodContext, ContextAwareTransformer
from libcst.codemod.visitors import AddImportsVisitor

from scanner.source.interface import Edit, Span
from scanner.source.module import Module

__all__ = ["Additions", "insertion", "only_added", "readable"]

_IMPORTS = (cst.Import, cst.ImportFrom)
_Statements = Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement]


class Additions(NamedTuple):
    """What to add to a file."""

    modules: tuple[str, ...]
    """To import by their names."""
    definitions: tuple[str, ...]
    """Statements that use what is imported."""
    below: int | None
    """Statement that they come below, and below imports that follow it: its number in the body of
    `ast.Module`; None for the beginning of the file."""


def insertion(module: Module, wanted: Additions) -> Edit | None:
    """The edit that makes additions; None where LibCST cannot read the file."""
    text = "\n".join(module.lines)
    tree = readable(text)
    if tree is None:
        return None
    added = tree.visit(AddBelowImports(CodemodContext(), wanted))
    return only_added(text, added.code)


def readable(text: str) -> cst.Module | None:
    """The tree of a text; None where LibCST cannot parse it, or would not write it as it was."""
    try:
        tree = cst.parse_module(text)
        return tree if tree.code == text else None
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError):
        return None


def only_added(old: str, new: str) -> Edit | None:
    """The one insertion that makes a text another one, at the start of a line if possible.

    None where more was changed. Lines end in `\\n`.
    """
    pairs = enumerate(zip(old, new, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))
    for at in (old.rfind("\n", 0, same) + 1, same):
        end = len(new) - (len(old) - at)
        if end >= at and new[end:] == old[at:]:
            line, column = old.count("\n", 0, at) + 1, at - old.rfind("\n", 0, at)
            return Edit(Span(line, column, line, column), new[at:end])
    return None


class AddBelowImports(ContextAwareTransformer):
    """Adds imports, then definitions, below a statement and the imports that follow it."""

    def __init__(self, context: CodemodContext, wanted: Additions) -> None:
        super().__init__(context)
        self._wanted = wanted
        for module in wanted.modules:
            AddImportsVisitor.add_needed_import(context, module)

    def visit_Module(self, node: cst.Module) -> bool:  # noqa: N802, ARG002 - LibCST's name
        """Statements are added between those of the file alone."""
        return False

    def leave_Module(  # noqa: N802 - LibCST's name
        self,
        original_node: cst.Module,  # noqa: ARG002
        updated_node: cst.Module,
    ) -> cst.Module:
        """Make the additions."""
        body = list(updated_node.body)
        start = 0
        if self._wanted.below is not None:
            start, number = _place(body, self._wanted.below)
            line = body[start]
            if isinstance(line, cst.SimpleStatementLine) and (rest := _rest(line, number)):
                body[start] = self._on_line(line, rest[0])
                return updated_node.with_changes(body=body)
            start += 1
        end = next((i for i in range(start, len(body)) if not _is_head(body[i])), len(body))
        body[end : end + 1] = self._between(updated_node, body[:end], body[end : end + 1])
        return updated_node.with_changes(body=body)

    def _between(self, module: cst.Module, above: _Statements, below: _Statements) -> _Statements:
        # AddImportsVisitor alone would take the first imports of the file, which may stand above
        # variables that have to be set before torch is imported. So it sees one statement.
        part = cst.Module(body=below, default_newline=module.default_newline)
        body = list(part.visit(AddImportsVisitor(self.context)).body)
        new = next((i for i, each in enumerate(body) if _is_import(each)), 0)
        first = new + len(self._wanted.modules)
        body[first:first] = [
            cst.parse_statement(each).with_changes(leading_lines=[cst.EmptyLine(indent=False)])
            for each in self._wanted.definitions
        ]
        previous = [*above, *body[:new]][-1:]
        if previous and not _is_import(previous[0]):
            body[new] = body[new].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        return body

    def _on_line(self, line: cst.SimpleStatementLine, place: int) -> cst.SimpleStatementLine:
        """For `import torch; x.cuda()`, where the device cannot be chosen on another line."""
        imports = [f"import {module}" for module in self._wanted.modules]
        texts = [*imports, *map(_on_one_line, self._wanted.definitions)]
        parsed = cst.ensure_type(cst.parse_statement("; ".join(texts)), cst.SimpleStatementLine)
        added = [each.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for each in parsed.body]
        return line.with_changes(body=[*line.body[:place], *added, *line.body[place:]])


def _place(body: _Statements, number: int) -> tuple[int, int]:
    """Where a statement stands that `ast` numbers: the line's number, and that on the line."""
    parts = (
        (at, part)
        for at, line in enumerate(body)
        for part in range(len(line.body) if isinstance(line, cst.SimpleStatementLine) else 1)
    )
    return next(islice(parts, number, None))


def _rest(line: cst.SimpleStatementLine, number: int) -> list[int]:
    """What follows a statement on its line and is no import."""
    return [i for i in range(number + 1, len(line.body)) if not _is_head(line.body[i])]


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(small, _IMPORTS) for small in statement.body
    )


def _is_head(node: cst.CSTNode) -> bool:
    """An import, or a block of nothing else: `try: import apex`."""
    if isinstance(node, cst.BaseSmallStatement):
        return isinstance(node, (*_IMPORTS, cst.Pass))
    known = not isinstance(node, cst.BaseCompoundStatement) or isinstance(node, cst.If | cst.Try)
    return known and all(map(_is_head, node.children))


def _on_one_line(statement: str) -> str:
    return " ".join(statement.split()).replace("( ", "(").replace(" )", ")")
