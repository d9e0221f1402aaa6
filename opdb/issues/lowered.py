"""Ops that only MPS dispatches, as the op that every backend has: one condition serves both.

A model that calls `convolution` is captured with `_mps_convolution` where the release has it. An
issue of the one is an issue of the other, and its condition may name the arguments of either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["GENERAL", "General"]


@dataclass(frozen=True)
class General:
    """What an op of MPS alone stands for."""

    op: str
    """Base name, without namespace."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Argument of the op of MPS → its name there, where it is another."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Arguments there that the op of MPS has no need of."""


_INPUT = {"self": "input"}
GENERAL: Mapping[str, General] = {
    "_mps_convolution": General("convolution", _INPUT, {"transposed": False}),
    "_mps_convolution_transpose": General("convolution", _INPUT, {"transposed": True}),
    "mps_convolution_backward": General("convolution_backward", _INPUT, {"transposed": False}),
    "mps_convolution_transpose_backward": General(
        "convolution_backward", _INPUT, {"transposed": True}
    ),
}
"""Base name of the op of MPS → what it stands for: the reverse of `scanner.capture.lowering`."""
