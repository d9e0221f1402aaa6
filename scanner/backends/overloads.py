"""Finds the callable behind a qualified overload name."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from scanner.probe.substitutes import SUBSTITUTES

__all__ = ["overload", "runnable"]


@cache
def overload(op: str) -> Any:
    """The `torch._ops.OpOverload` of `aten::mm` or `aten::linalg_svd.U`.

    Raises `LookupError` when the installed torch has no such overload, which says nothing about
    the device.
    """
    namespace, separator, rest = op.partition("::")
    name, _, variant = rest.partition(".")
    try:
        if not separator:
            raise AttributeError
        packet = getattr(getattr(torch.ops, namespace), name)
        return getattr(packet, variant or "default")
    except (AttributeError, RuntimeError):
        raise LookupError(f"torch {torch.__version__} has no {op}") from None


@cache
def runnable(op: str, device_type: str) -> Any:
    """What runs an op on a type of device.

    Ops that only MPS has a kernel for are composed of others elsewhere, so that a step captured
    for MPS can be run on any device.
    """
    found = overload(op)
    return found if device_type == "mps" else SUBSTITUTES.get(op, found)
