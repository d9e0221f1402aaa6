"""Finds the callable behind a qualified overload name."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
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
    _register(namespace)
    try:
        if not separator:
            raise AttributeError
        packet = getattr(getattr(torch.ops, namespace), name)
        return getattr(packet, variant or "default")
    except (AttributeError, RuntimeError):
        raise LookupError(f"torch {torch.__version__} has no {op}") from None


_REGISTERED_BY = {"torch_nn": "torch.nn.modules.linear_cross_entropy"}
"""Namespace → the module of torch that defines its ops, which nothing else imports."""


def _register(namespace: str) -> None:
    module = _REGISTERED_BY.get(namespace)
    if module is not None:
        with suppress(ImportError):  # older releases have neither
            import_module(module)


@cache
def runnable(op: str, device_type: str) -> Any:
    """What runs an op on a type of device.

    Ops that only MPS has a kernel for are composed of others elsewhere, so that a step captured
    for MPS can be run on any device.
    """
    found = overload(op)
    return found if device_type == "mps" else SUBSTITUTES.get(op, found)
