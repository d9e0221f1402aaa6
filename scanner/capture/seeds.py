"""Seeds every source of random numbers that a step may draw from."""

from __future__ import annotations

import random
import sys

import torch

__all__ = ["seed_everything"]


def seed_everything() -> None:
    """Real values are part of the report, which has to be the same for the same file."""
    torch.default_generator.manual_seed(0)
    random.seed(0)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(0)
