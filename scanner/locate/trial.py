"""Calls user code to see whether arguments fit, leaving the model as it was."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from scanner.locate.blame import needs_values

__all__ = ["Outcome", "attempt", "keeping"]

_MISFIT = "Using a target size"
"""Start of torch's warning for a target that broadcasts against the input."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one call."""

    status: Literal["ok", "values", "failed"]
    """`values`: it went as far as tensors without values can go."""
    output: Any = None
    error: BaseException | None = None


def attempt(function: Callable[[], Any], *, grad: bool = False) -> Outcome:
    """Calls the function without gradients, unless asked or it asks for some itself."""
    outcome = _call(function, grad=grad)
    if outcome.status == "failed" and "require grad" in str(outcome.error):
        outcome = _call(function, grad=True)
    return outcome


def _call(function: Callable[[], Any], *, grad: bool) -> Outcome:
    try:
        with torch.set_grad_enabled(grad), warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=_MISFIT)
            return Outcome(status="ok", output=function())
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        return Outcome(status="values" if needs_values(error) else "failed", error=error)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps torch from logging what fails: failing is what trials are for."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def keeping(model: Any, *, real: bool) -> Iterator[None]:
    """Restores buffers and the random state after trials, where tensors hold values at all."""
    with ExitStack() as stack:
        if real:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            if isinstance(model, torch.nn.Module):
                stack.callback(_restore, [(b, b.clone()) for b in model.buffers()])
        yield


def _restore(saved: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    with torch.no_grad():
        for buffer, value in saved:
            buffer.copy_(value)
