"""Objects that the compiler laid out: string, number and array literals, and blocks."""

from __future__ import annotations

import struct
from collections.abc import Callable

from scanner.sim.machine.memory import Memory
from scanner.sim.objc.blocks import Block
from scanner.sim.objc.collections import NSArray, NSDictionary
from scanner.sim.objc.methods import Object
from scanner.sim.objc.numbers import NSNumber
from scanner.sim.objc.strings import NSString

__all__ = ["CLASSES", "SINGLETONS", "read"]

_UTF16 = 0x10
CLASSES = {
    "___CFConstantStringClassReference": "CFConstantString",
    "__NSConcreteStackBlock": "Block",
    "__NSConcreteGlobalBlock": "Block",
}
"""Imported data that serve as the class of literals."""
SINGLETONS: dict[str, Callable[[], Object]] = {
    "___NSArray0__struct": NSArray,
    "___NSDictionary0__struct": NSDictionary,
}
"""Imported data that are objects themselves."""


def read(memory: Memory, kind: str, address: int) -> Object | None:
    """The literal of a class (by name) at an address; None for another class."""
    if kind == "CFConstantString":
        return _string(memory, address)
    if kind == "Block":
        return Block()
    if kind == "NSConstantIntegerNumber":
        return NSNumber(int.from_bytes(memory.read(address + 16, 8), "little", signed=True))
    if kind == "NSConstantDoubleNumber":
        return NSNumber(float(struct.unpack("<d", memory.read(address + 8, 8))[0]))
    if kind == "NSConstantFloatNumber":
        return NSNumber(float(struct.unpack("<f", memory.read(address + 8, 4))[0]))
    if kind == "NSConstantArray":
        count, items = memory.words(address + 8, 2)
        return NSArray(list(memory.words(items, count)))
    if kind == "NSConstantDictionary":
        _, count, keys, values = memory.words(address + 8, 4)
        pairs = zip(memory.words(keys, count), memory.words(values, count), strict=True)
        return NSDictionary(dict(pairs))
    return None


def _string(memory: Memory, address: int) -> NSString:
    flags, text, length = memory.words(address + 8, 3)
    if flags & _UTF16:
        return NSString(memory.read(text, 2 * length).decode("utf-16-le"))
    return NSString(memory.read(text, length).decode("latin-1"))
