"""What is called with the inputs, and the inputs of one call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

__all__ = ["VARIADIC", "Entry", "Inputs"]

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The model or one of its methods."""

    model: Any
    method: str = ""
    """Empty for the model itself."""
    extras: tuple[str, ...] = ()
    """Optional parameters that the file's own call gives."""
    name: str = ""
    """How messages name the model."""

    @property
    def function(self) -> Callable[..., Any]:
        """The callable."""
        found: Callable[..., Any] = getattr(self.model, self.method) if self.method else self.model
        return found

    @functools.cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Of the forward function, without self; empty when they cannot be read."""
        function = self.function
        if isinstance(function, torch.nn.Module):
            function = function.forward
        try:
            return dict(inspect.signature(function).parameters)
        except (TypeError, ValueError, NameError):  # NameError: annotations that cannot be read
            return {}

    @property
    def required(self) -> list[str]:
        """Names of the parameters that a call must give."""
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is parameter.empty and parameter.kind not in VARIADIC
        ]

    @property
    def shown(self) -> str:
        """`forward(x, mask)`."""
        is_module = isinstance(self.model, torch.nn.Module)
        name = self.method or ("forward" if is_module else self.name)
        return f"{name}({', '.join(self.parameters)})"

    def split(self, made: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments as long as none is skipped, the others by keyword."""
        args: list[Any] = []
        rest = dict(made)
        for name, parameter in self.parameters.items():
            is_keyword = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
            if name not in rest or is_keyword:
                break
            args.append(rest.pop(name))
        return tuple(args), rest


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Arguments for one call."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    """Of the trial that accepted them."""
    tried: bool = False
    """Whether `output` is one."""
    notes: tuple[str, ...] = ()
