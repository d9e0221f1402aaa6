"""Makes the CPU and meta dispatch tables of this process decide as MPS does.

A composite op that a release registers for MPS is *held*: it gets a backend kernel here, so that
the dispatcher no longer decomposes it and autograd uses its own derivative formula
(`linear_backward` instead of `mm` and `sum`). Ops whose C++ body branches on the device type
(`lstm.input`, `rms_norm`, `scaled_dot_product_attention`) are given the MPS branch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch

from scanner.capture.branches import BRANCHES, UNCHECKED
from scanner.capture.kernels import KERNELS

__all__ = ["held"]

_aten = torch.ops.aten
_BACKENDS = ("Meta", "CPU")
_AUTOGRAD = ("AutogradMeta", "AutogradCPU")
_Kernel = Callable[..., Any]


@contextmanager
def held(holds: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Holds the named ops; yields the names that the running torch does not know.

    Process-wide while active: the dispatcher has one table.
    """
    library = torch.library.Library("aten", "IMPL")
    missing = tuple(sorted(name for name in holds if not _install(library, name)))
    try:
        _install_branches(library, holds)
        yield missing
    finally:
        library._destroy()


def _install(library: torch.library.Library, name: str) -> bool:
    for op, kernel in KERNELS.get(name, {}).items():
        if not hasattr(_aten, op.partition(".")[0]):
            return False
        _impl(library, op, kernel, _BACKENDS)
    return True


def _install_branches(library: torch.library.Library, holds: frozenset[str]) -> None:
    unchecked = {op: one for op, one in UNCHECKED.items() if one[0] in holds}
    for op, (needed, branch) in (BRANCHES | unchecked).items():
        if (not needed or needed in holds) and _known(op) and _known(needed):
            _impl(library, op, branch, _BACKENDS + _AUTOGRAD)


def _known(op: str) -> bool:
    """Whether the running torch has an op; marks of branches are no ops."""
    name = op.removeprefix("aten::").partition(".")[0]
    return not name or "::" in name or hasattr(_aten, name)


def _impl(library: torch.library.Library, op: str, kernel: _Kernel, keys: Sequence[str]) -> None:
    # Library.impl() refuses meta kernels for composite ops, since for most uses they are a
    # mistake; here undoing the composition is the purpose.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
        for key in keys:
            cast(Any, library).m.impl(op, key, kernel, False)
