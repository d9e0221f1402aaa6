"""Which operators a compiled kernel calls through the dispatcher: always, or on some path."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opdb.build.control_flow import Flow
from opdb.build.macho import Image

__all__ = ["CertainCalls", "PossibleCalls"]

_OPERATOR = re.compile(r"__ZN2at4_ops(\d+)(\w+)")
"""`at::_ops::<name>::call`, the dispatcher's entry: `add_Tensor` is the overload `add.Tensor`."""


class _Calls:
    """Answers for one library, given the overloads that it defines."""

    depth: int
    """How many functions of namespace `at` are followed into one another."""
    followed: tuple[str, ...]
    """Their mangled names start with one of these."""

    def __init__(self, image: Image, flow: Flow, overloads: Iterable[str]) -> None:
        self._image = image
        self._flow = flow
        self._overloads = {name.replace(".", "_"): name for name in overloads}
        self._known: dict[int, tuple[frozenset[str], int]] = {}

    def of(self, entry: int) -> frozenset[str]:
        """Overloads that are called from a function's entry on."""
        return self._within(entry, self.depth)

    def _direct(self, entry: int) -> list[int]:
        raise NotImplementedError

    def _within(self, entry: int, depth: int) -> frozenset[str]:
        known, looked = self._known.get(entry, (frozenset[str](), -1))
        if looked >= depth:
            return known
        self._known[entry] = known, depth  # a cycle adds nothing
        found: set[str] = set()
        for target in self._direct(entry):
            found |= self._called(target, depth)
        self._known[entry] = frozenset(found), depth
        return frozenset(found)

    def _called(self, target: int, depth: int) -> frozenset[str]:
        symbol = self._image.symbol(target)
        operator = _OPERATOR.match(symbol)
        if operator:
            name = operator[2][: int(operator[1])]
            return frozenset({self._overloads[name]})
        if depth and symbol.startswith(self.followed) and self._image.section(target) == "__text":
            return self._within(target, depth - 1)
        return frozenset()


class CertainCalls(_Calls):
    """Calls on every path from a function's entry to its return."""

    depth = 4
    followed = ("__ZN2at",)

    def _direct(self, entry: int) -> list[int]:
        return self._flow.certain(entry)


class PossibleCalls(_Calls):
    """Calls on any path that returns, also from lambdas and const methods."""

    depth = 6
    followed = ("__ZN2at", "__ZNK2at", "__ZZN2at", "__ZZNK2at")

    def _direct(self, entry: int) -> list[int]:
        return self._flow.possible(entry)
