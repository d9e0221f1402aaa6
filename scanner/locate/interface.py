"""What locating a model yields: sources, candidates in them, and subjects ready to be captured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scanner.errors import LocateError
from scanner.records import Phase

__all__ = ["Candidate", "Found", "LocateOptions", "NeedsValues", "Source", "Subject"]


class NeedsValues(LocateError):  # noqa: N818 - says what would help, like an answer
    """Building the model or inferring its inputs reads tensor values, which this world lacks.

    The same candidate may build in a world whose tensors are real; the original exception is
    `__cause__`.
    """


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
    notes: tuple[str, ...] = ()
    """What a directory search left out in favour of this file."""


@dataclass(frozen=True, kw_only=True)
class LocateOptions:
    """What the user said about models and inputs, by flag or configuration."""

    inputs: str | None = None
    """An `--inputs` spec, `x=1x3x224x224:float32,ids=2x128:int64[0,50257]`."""
    entry: str | None = None
    """Name from `[tool.opscan]`; same meaning as `Source.name`."""
    mode: Literal["auto", "train", "infer"] = "auto"
    """With `infer`, what the file says about training is not read."""
    real: bool = False
    """Whether the world's tensors hold values; inputs are then drawn instead of left empty."""


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
    autocast: str | None = None
    """dtype name of the `torch.autocast` around the file's forward; not entered by `forward`."""
    origins: dict[Phase, tuple[str, int]] = field(default_factory=dict)
    """File and line of the loss, `backward()`, optimizer and so on, by phase.

    Shown for ops that no user frame issues, since opscan itself makes the calls of the step.
    """
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


@dataclass(frozen=True, kw_only=True)
class Found:
    """All that a source offers."""

    candidates: tuple[Candidate, ...]
    """In the order of the rules, then of the file; never empty."""
    notes: tuple[str, ...] = ()
    """What was left out and why: parts of other models, bases, factories that need arguments."""
