"""Edits that move a statement above the imports of torch."""

from __future__ import annotations

import ast

from scanner.source.interface import Edit, Span
from scanner.source.module import Module

__all__ = ["above_imports"]

_LATE = frozenset(
    [
        *("torch", "torchvision", "torchaudio", "timm", "lightning", "pytorch_lightning"),
        *("transformers", "diffusers", "accelerate", "torchmetrics", "peft", "trl"),
    ]
)
"""What imports torch."""


def above_imports(node: ast.AST, module: Module) -> tuple[Edit, ...]:
    """Move the statement of a node, with what it uses, above the first import of torch.

    None but statements of the file's own level are moved, with literals alone in them; the comment
    on their lines goes with them. Empty where that is not possible.
    """
    body = module.tree.body
    moved = next((each for each in body if module.span(each) == module.span(node)), None)
    first = next((each for each in body if _imports_torch(each)), None)
    if moved is None or first is None or not _is_plain(moved) or first.lineno >= moved.lineno:
        return ()
    needed = _needed(module, moved, first)
    if needed is None or _shares_lines(module, first):
        return ()
    spans = [_lines_of(module, each) for each in [*needed, moved]]
    if any(span is None for span in spans):
        return ()
    cut = [Edit(span, "") for span in spans if span is not None]
    texts = (module.slice(edit.span) for edit in cut)
    text = "".join(texts)
    if not text.endswith("\n"):
        text += "\n"
    return (Edit(Span(first.lineno, 1, first.lineno, 1), text), *cut)


def _imports_torch(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        match node:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str() as module, level=0):
                modules = [module]
            case _:
                continue
        if any(module.partition(".")[0] in _LATE for module in modules):
            return True
    return False


def _is_plain(node: ast.stmt) -> bool:
    """Whether it uses nothing but one name and literals: `os.environ["A"] = "1"`."""
    known = (ast.Assign, ast.Expr, ast.Call, ast.Subscript, ast.Attribute, ast.Name, ast.Constant)
    parts = [each for each in ast.walk(node) if isinstance(each, ast.expr | ast.stmt)]
    names = {each.id for each in parts if isinstance(each, ast.Name)}
    return len(names) == 1 and all(isinstance(each, known) for each in parts)


def _needed(module: Module, moved: ast.stmt, first: ast.stmt) -> list[ast.stmt] | None:
    """Imports that have to move too; None where the statement cannot move."""
    (name,) = {node.id for node in ast.walk(moved) if isinstance(node, ast.Name)}
    imports = (each for each in module.tree.body if isinstance(each, ast.Import | ast.ImportFrom))
    for node in imports:
        if name in (alias.asname or alias.name.partition(".")[0] for alias in node.names):
            if node.lineno < first.lineno:
                return []
            return [node] if len(node.names) == 1 and node.lineno < moved.lineno else None
    return None


def _lines_of(module: Module, node: ast.stmt) -> Span | None:
    """The lines of a statement that has them for itself."""
    if _shares_lines(module, node):
        return None
    last = node.end_lineno or node.lineno
    return Span(node.lineno, 1, last + 1, 1) if last < len(module.lines) else None


def _shares_lines(module: Module, node: ast.stmt) -> bool:
    """Whether other code stands on a statement's lines; a comment may."""
    span = module.span(node)
    before = module.lines[span.line - 1][: span.column - 1]
    after = module.lines[span.end_line - 1][span.end_column - 1 :].strip()
    return bool(before.strip()) or (after != "" and not after.startswith("#"))
