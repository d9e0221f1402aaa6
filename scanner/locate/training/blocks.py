"""What around a call decides about gradients and precision: `with` blocks and leaf tensors."""

from __future__ import annotations

import ast

import torch

from scanner.locate.reading.scopes import Scope, calls_in
from scanner.locate.reading.trees import root_name
from scanner.locate.reading.values import Values

__all__ = ["autocast_dtype", "is_without_gradient", "leaf_names", "place_of"]


def place_of(node: ast.Call) -> tuple[int, int]:
    """Tells calls of one file apart, copies of the tree included."""
    return node.lineno, node.end_col_offset or 0


def is_without_gradient(scope: Scope, call: ast.Call) -> bool:
    """Whether the call stands in a `no_grad` or `inference_mode` block, as a teacher's does."""
    for statement in scope.statements:
        if not isinstance(statement, ast.With | ast.AsyncWith) or not _holds(statement, call):
            continue
        texts = [ast.unparse(item.context_expr) for item in statement.items]
        if any("no_grad" in text or "inference_mode" in text for text in texts):
            return True
    return False


def _holds(statement: ast.stmt, call: ast.Call) -> bool:
    place = place_of(call)
    return any(isinstance(n, ast.Call) and place_of(n) == place for n in ast.walk(statement))


def autocast_dtype(values: Values, call: ast.Call) -> str | None:
    """dtype name of the autocast block around a call; None outside of one."""
    for statement in values.scope.statements:
        if isinstance(statement, ast.With | ast.AsyncWith) and _holds(statement, call):
            for item in statement.items:
                dtype = _dtype(values, item.context_expr)
                if dtype is not None:
                    return dtype
    return None


def _dtype(values: Values, node: ast.expr) -> str | None:
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("autocast"):
        return None
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if values.get(given.get("enabled"), True) is False:
        return None
    dtype = values.get(given.get("dtype"))
    if not isinstance(dtype, torch.dtype):
        dtypes = [v for v in map(values.get, node.args) if isinstance(v, torch.dtype)]
        dtype = dtypes[0] if dtypes else torch.float16
    return str(dtype).removeprefix("torch.")


def leaf_names(scope: Scope) -> set[str]:
    """Names of tensors that a function makes require gradients, as derivatives by inputs need."""
    found: set[str] = set()
    for statement, call in calls_in(scope):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
            found.add(root_name(call.func) or "")
        if any(k.arg == "requires_grad" for k in call.keywords) and isinstance(
            statement, ast.Assign
        ):
            found |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
    for statement in scope.statements:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        found |= {
            root_name(target) or ""
            for target in targets
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad"
        }
    return found - {""}
