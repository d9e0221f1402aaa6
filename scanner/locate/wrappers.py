"""Wrappers that change how a module runs, not what it computes."""

from __future__ import annotations

import torch

__all__ = ["unwrapped"]


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module below `torch.compile` and data-parallel wrappers."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if isinstance(model, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
            inner = model.module
        if not isinstance(inner, torch.nn.Module):
            return model
        model = inner
