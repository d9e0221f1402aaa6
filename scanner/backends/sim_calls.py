"""How a call of the installed torch is put to a simulated release, and how an exception returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from scanner.backends.overloads import overload
from scanner.sim.call import Call
from scanner.sim.values import Argument

__all__ = ["named", "raised_error"]

_ERRORS: Mapping[str, type[Exception]] = {
    "RuntimeError": RuntimeError,
    "NotImplementedError": NotImplementedError,
    "IndexError": IndexError,
    "ValueError": ValueError,
    "TypeError": TypeError,
    "OutOfMemoryError": torch.OutOfMemoryError,
    "LinAlgError": getattr(torch.linalg, "LinAlgError", RuntimeError),
}


def named(
    op: str, known: Sequence[Argument] | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by the names that the release has for them; `known` is its schema.

    Those that it lacks are left out where they are defaults of the installed torch.
    """
    arguments = overload(op)._schema.arguments
    ours: list[str] = [argument.name for argument in arguments]
    given = {**dict(zip(ours, args, strict=False)), **kwargs}
    if known is None:
        return given
    theirs = [argument.name for argument in known]
    defaults = {argument.name: argument.default_value for argument in arguments}
    spelt = _respelt(ours, theirs)
    return {
        spelt.get(name, name): value
        for name, value in given.items()
        if name in theirs or name in spelt or value is None or value != defaults.get(name)
    }


def _respelt(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Arguments that the release calls otherwise; they stand at the same place."""
    if len(ours) != len(theirs):
        return {}
    return {
        mine: its
        for mine, its in zip(ours, theirs, strict=True)
        if mine not in theirs and its not in ours
    }


def raised_error(call: Call) -> Exception:
    """The exception that Python would see."""
    return _ERRORS.get(call.error, RuntimeError)(call.message)
