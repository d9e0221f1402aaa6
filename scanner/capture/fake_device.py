"""What a fake tensor answers when it is asked for its device.

Its class has a property of its own for that, in Python, which no function mode sees.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor

__all__ = ["answering"]

_SEES_THE_TARGET = ("torch.nn.",)
_SEES_THE_BASE = ("torch", "scanner")
"""Packages whose own code must know the tensor as it is."""


def answering(
    device_of: Callable[[Tensor], torch.device],
) -> contextlib.AbstractContextManager[Any]:
    """Meanwhile `x.device` of a fake tensor is what `device_of` says, for the user's code."""
    from torch._subclasses.fake_tensor import FakeTensor

    own = vars(FakeTensor)["device"].fget

    def device(self: Tensor) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__", "")
        return own(self) if _is_inside(asking) else device_of(self)

    return mock.patch.object(FakeTensor, "device", property(device))


def _is_inside(module: str) -> bool:
    if module.startswith(_SEES_THE_TARGET):
        return False
    return module.partition(".")[0] in _SEES_THE_BASE
