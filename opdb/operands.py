"""Which operand's dtype a call is filed under."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main_operand"]

_NAMED = ("self", "input")


def main_operand(names: Sequence[str]) -> int | None:
    """Place of the main one among an op's tensors, None when there are none.

    `names` are those of the schema, in its order; a tensor of a list is `tensors[0]`. The main
    operand is the one named `self`, else `input`, else the first: the condition of `where` and the
    boundaries of `searchsorted` are not what its kernel is chosen by.
    """
    for wanted in _NAMED:
        if wanted in names:
            return list(names).index(wanted)
    return 0 if names else None
