"""A loaded file with everything that its syntax tree tells, shared by the rules that read it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from scanner.locate.load import Loaded
from scanner.locate.reading.outline import Outline, outline
from scanner.locate.reading.scopes import Scope, homes, scopes
from scanner.locate.reading.values import Values

__all__ = ["Context"]


class Context:
    """One loaded source and the user's options for it."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.tree = loaded.tree

    @property
    def namespace(self) -> dict[str, Any]:
        """The module's globals."""
        return vars(self.loaded.module)

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return self.loaded.cwd

    @property
    def display(self) -> str:
        """How messages name the source."""
        return self.loaded.display

    @functools.cached_property
    def outline(self) -> Outline:
        """What the file defines, by its text."""
        return outline(self.tree)

    @functools.cached_property
    def scopes(self) -> list[Scope]:
        """The file's functions, the module body first."""
        modules = {name for name, value in self.namespace.items() if is_module_class(value)}
        return scopes(self.tree, frozenset(modules))

    def homes(self, scope: Scope, name: str) -> list[Scope]:
        """Scopes that may assign a name: for `self.x` every method of the class."""
        return homes(scope, name, self.scopes)

    def values(self, scope: Scope, bound: Mapping[str, Any] = MappingProxyType({})) -> Values:
        """An evaluator of the scope's expressions."""
        return Values(scope, self.namespace, self.tree, self.scopes, bound)

    def is_own(self, thing: Any) -> bool:
        """Whether a class or function is defined in this source (or below it, for a package)."""
        home = getattr(thing, "__module__", None) or ""
        name = self.loaded.module.__name__
        is_package = hasattr(self.loaded.module, "__path__")
        return home == name or (is_package and home.startswith(name + "."))

    def is_users(self, thing: Any) -> bool:
        """Whether a class or function is defined in any of the user's own files."""
        from scanner.locate.blame import is_user_file

        try:
            file = inspect.getsourcefile(thing)
        except TypeError:
            return False
        return file is not None and is_user_file(file)

    def place(self, line: int) -> str:
        """`file:line`, as shown to the user."""
        return f"{self.display}:{line}"


def is_module_class(value: Any) -> bool:
    """Whether the value is a subclass of `torch.nn.Module`."""
    return inspect.isclass(value) and issubclass(value, torch.nn.Module)
