"""What locating a model yields: sources, candidates in them, and subjects ready to be captured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["Candidate", "LocateOptions", "Source", "Subject"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file or module that the user named, or that a directory search found."""

    argument: str
    """As typed (or the file found, relative to the working directory)."""
    path: Path | None = None
    """Absolute path of the file; None for a dotted module."""
    module: str | None = None
    """Dotted module name; None for a file."""
    name: str | None = None
    """The `:name` part: only this candidate is wanted."""


@dataclass(frozen=True, kw_only=True)
class LocateOptions:
    """What the user said about models and inputs, by flag or configuration."""

    inputs: str | None = None
    """An `--inputs` spec, `x=1x3x224x224:float32,ids=2x128:int64[0,50257]`."""
    entry: str | None = None
    """Name from `[tool.opscan]`; same meaning as `Source.name`."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model with everything that one step of it needs; its tensors live where it was built."""

    model: Any
    """A `torch.nn.Module`, or any callable on tensors."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    forward: Callable[..., Any] | None = None
    """Called instead of the model (a Lightning-style `training_step`); returns output or loss."""
    loss: Callable[[Any], Any] | None = None
    """From the model's output to a scalar."""
    optimizer: Any = None
    """A `torch.optim.Optimizer` over the model's parameters."""
    clip: Callable[[], Any] | None = None
    """Gradient clipping, as the file does it."""
    notes: tuple[str, ...] = ()
    """What was inferred: shown to the user, worded so that it can be checked."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One model that a source offers, not built yet."""

    name: str
    """As shown to the user: `TinyGPT`, `build_model()`."""
    entry: str
    """What selects it after `source:`."""
    how: Literal["hook", "config", "global", "factory", "class"]
    build: Callable[[], Subject]
    """Builds it with whatever tensors the surrounding capture world yields.

    Raises `LocateError` when it cannot be constructed or no inputs for it can be inferred.
    """
