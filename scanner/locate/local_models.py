"""Models that exist only inside a function: `def main(): net = nn.Sequential(…)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import blamed
from scanner.locate.construct import HOOK_EXAMPLE
from scanner.locate.context import Context, is_module_class
from scanner.locate.reading.makers import unwrapped_call
from scanner.locate.reading.outline import is_loss_name
from scanner.locate.reading.scopes import Scope
from scanner.locate.reading.values import Unresolved

__all__ = ["LocalModel", "local_models"]


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A variable of a function that holds a module of torch's own."""

    entry: str
    """`main.net`."""
    scope: Scope
    expression: ast.expr

    def build(self, context: Context) -> torch.nn.Module:
        """Evaluates the expression; raises `LocateError` when it needs what only a run knows."""
        place = context.place(self.expression.lineno)
        with blamed(f"building {self.entry} failed", remedy=HOOK_EXAMPLE, cwd=context.cwd):
            try:
                model: Any = context.values(self.scope).of(self.expression)
            except Unresolved as error:
                raise LocateError(
                    f"{place}: {self.entry} cannot be built without running the function: {error}",
                    remedy=HOOK_EXAMPLE,
                ) from error
            assert isinstance(model, torch.nn.Module)
            return model


def local_models(context: Context) -> Iterator[LocalModel]:
    """Variables assigned from a module class of torch that is no loss, in the file's order."""
    for scope in context.scopes:
        if not scope.name or is_module_class(context.namespace.get(scope.owner)):
            continue
        values = context.values(scope)
        for name, expressions in scope.assigned.items():
            for expression in expressions:
                made = unwrapped_call(expression) if expression is not None else None
                target = values.target(made.func) if isinstance(made, ast.Call) else None
                if expression is not None and _is_model_class(target):
                    entry = f"{scope.name}.{name.removeprefix('self.')}"
                    yield LocalModel(entry=entry, scope=scope, expression=expression)
                    break


def _is_model_class(target: Any) -> bool:
    """Containers and layers with weights; activations and losses are none."""
    if not is_module_class(target) or is_loss_name(target.__name__):
        return False
    home = target.__module__
    return home.startswith("torch.nn.modules.") and home.rpartition(".")[2] in {
        "container",
        "conv",
        "linear",
        "rnn",
        "transformer",
        "sparse",
    }
