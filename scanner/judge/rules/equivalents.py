"""Rewrites that use only ops with MPS kernels; each is proven equal on the CPU by a test."""

from __future__ import annotations

__all__ = ["EQUIVALENTS", "equivalent"]

EQUIVALENTS = {
    "aten::kthvalue": "x.sort(dim).values.select(dim, k - 1)",
}
"""Op without overload → expression over the op's arguments, by their schema names."""


def equivalent(op: str) -> str | None:
    """The rewrite for an op or any of its overloads; None when none is proven."""
    return EQUIVALENTS.get(op.split(".", 1)[0])
