"""Knows which module is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModulePath"]


class ModulePath:
    """The path of the innermost running module, as in `named_modules()`."""

    def __init__(self, root: Any) -> None:
        named = root.named_modules() if isinstance(root, nn.Module) else ()
        self._names = {id(module): name for name, module in named}
        self._running: list[str] = []

    @property
    def current(self) -> str:
        """Empty for the root module and outside any."""
        return self._running[-1] if self._running else ""

    @contextmanager
    def tracked(self) -> Iterator[None]:
        """Follows module calls while active."""
        enter = register_module_forward_pre_hook(self._enter)
        leave = register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()
            self._running.clear()

    def _enter(self, module: nn.Module, _args: Any) -> None:
        # A module that is not part of the model (a loss) keeps the path it is called from.
        self._running.append(self._names.get(id(module), self.current))

    def _leave(self, _module: nn.Module, _args: Any, _result: Any) -> None:
        if self._running:
            self._running.pop()
