"""Which operators a compiled kernel always calls through the dispatcher."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opdb.build.control_flow import Flow
from opdb.build.macho import Image

__all__ = ["CertainCalls"]

_OPERATOR = re.compile(r"__ZN2at4_ops(\d+)(\w+)")
"""`at::_ops::<name>::call`, the dispatcher's entry: `add_Tensor` is the overload `add.Tensor`."""

_DEPTH = 4
"""How many functions of namespace `at` are followed into one another."""


class CertainCalls:
    """Answers for one library, given the overloads that it defines."""

    def __init__(self, image: Image, flow: Flow, overloads: Iterable[str]) -> None:
        self._image = image
        self._flow = flow
        self._overloads = {name.replace(".", "_"): name for name in overloads}
        self._known: dict[int, tuple[frozenset[str], int]] = {}

    def of(self, entry: int, depth: int = _DEPTH) -> frozenset[str]:
        """Overloads that are called on every path from a function's entry to its return."""
        known, looked = self._known.get(entry, (frozenset[str](), -1))
        if looked >= depth:
            return known
        self._known[entry] = known, depth  # a cycle adds nothing
        found: set[str] = set()
        for target in self._flow.certain(entry):
            found |= self._called(target, depth)
        self._known[entry] = frozenset(found), depth
        return frozenset(found)

    def _called(self, target: int, depth: int) -> frozenset[str]:
        symbol = self._image.symbol(target)
        operator = _OPERATOR.match(symbol)
        if operator:
            name = operator[2][: int(operator[1])]
            return frozenset({self._overloads[name]})
        if depth and symbol.startswith("__ZN2at") and self._image.section(target) == "__text":
            return self.of(target, depth - 1)
        return frozenset()
