"""NSSet. Elements are kept as the addresses that were put in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.methods import Result, class_method, method

if TYPE_CHECKING:
    from scanner.sim.objc.message import Message
    from scanner.sim.objc.methods import Class

__all__ = ["NSMutableSet"]


class NSMutableSet(NSArray):
    """A set; order of insertion is kept."""

    name = "NSMutableSet"

    @class_method("set", "setWithCapacity:")
    @staticmethod
    def empty_set(kind: Class, message: Message) -> Result:
        """An empty set."""
        return kind.make()

    @method("addObject:")
    def add(self, message: Message) -> Result:
        """Adds unless it is there."""
        if message.word(0) not in self.items:
            self.items.append(message.word(0))

    @method("removeObject:")
    def discard(self, message: Message) -> Result:
        """Removes if it is there."""
        if message.word(0) in self.items:
            self.items.remove(message.word(0))
