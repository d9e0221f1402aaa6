"""BLAS and LAPACK, served by numpy and scipy."""

from __future__ import annotations

from scanner.sim.machine.cpu import Handler

__all__ = ["imports"]


def imports() -> dict[str, Handler]:
    """Handlers by import name."""
    return {}
