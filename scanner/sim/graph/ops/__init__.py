"""Meanings of MPSGraph's methods, a family a module.

A new family is a module here with a `METHODS` mapping, named in `_FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from scanner.sim.graph.methods import Method

__all__ = ["all_methods"]

_FAMILIES: tuple[str, ...] = (
    "binary",
    "convolution",
    "elementwise",
    "fourier",
    "indexing",
    "matrices",
    "normalization",
    "pooling",
    "randomness",
    "recurrent",
    "reductions",
    "resize",
    "sampling",
    "shapes",
    "slices",
    "sorting",
)


def all_methods() -> Mapping[str, Method]:
    """Every selector with its meaning. Raises ValueError when two families claim one."""
    found: dict[str, Method] = {}
    for family in _FAMILIES:
        methods: Mapping[str, Method] = import_module(f"{__name__}.{family}").METHODS
        twice = sorted(found.keys() & methods.keys())
        if twice:
            raise ValueError(f"{family} defines {', '.join(twice)} again")
        found.update(methods)
    return found
