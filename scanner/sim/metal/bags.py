"""Descriptors: objects that only hold properties."""

from __future__ import annotations

from typing import Any

from scanner.sim.graph.recording import Descriptor
from scanner.sim.metal.dtypes import dtype_name
from scanner.sim.metal.selectors import LAYOUT, parts, property_kind
from scanner.sim.objc.collections import NSArray
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Class, Object, Result

__all__ = ["Bag", "plain", "signed"]

_FACTORY = "With"


class Bag(Object):
    """Keeps what setters and factory methods give, by property name."""

    name = "Descriptor"

    def __init__(self) -> None:
        super().__init__()
        self.properties: dict[str, Any] = {}

    def value(self) -> Descriptor:
        """The recording's form."""
        return Descriptor(self.name, dict(self.properties))

    def fill(self, message: Message, names: list[str]) -> None:
        """Reads one argument for each property name."""
        kinds = [property_kind(name) for name in names]
        layout = [LAYOUT.get(kind, kind) for kind in kinds]
        for name, kind, raw in zip(names, kinds, message.decode(layout), strict=True):
            self.properties[name] = _property(message, kind, raw)

    def otherwise(self, message: Message) -> Result:
        """`setX:` stores; `x` reads; `initWithX:y:` stores several."""
        selector = message.selector
        if selector.startswith("set") and selector.endswith(":"):
            self.fill(message, [_lowered(selector[3:-1])])
            return None
        if selector.startswith("init" + _FACTORY):
            self.fill(message, factory_names(selector))
            return self
        if selector in self.properties:
            kept = self.properties[selector]
            return kept if isinstance(kept, int | float) else None
        if ":" not in selector:
            return 0
        raise message.missing(self.name)


def make_bag(kind: Class, message: Message) -> Bag:
    """What a class method `descriptorWithX:y:` makes."""
    made = kind.make()
    assert isinstance(made, Bag)
    if _FACTORY in message.selector:
        made.fill(message, factory_names(message.selector))
    return made


def factory_names(selector: str) -> list[str]:
    """Property names of `…WithX:y:`: `x`, `y`."""
    first, *rest = parts(selector)
    return [_lowered(first.split(_FACTORY, 1)[1]), *rest]


def plain(message: Message, word: int) -> Any:
    """What a recording keeps of an integer register: a signed number or an object's value."""
    if not word:
        return None
    if message.runtime.is_object(word):
        return of_object(message, message.runtime.find(word))
    return signed(word)


def signed(word: int) -> int:
    """An NSInteger."""
    return word - (1 << 64) if word >> 63 else word


def of_object(message: Message, thing: Object) -> Any:
    """What a recording keeps of an object."""
    if isinstance(thing, NSArray):
        return tuple(of_object(message, message.runtime.find(item)) for item in thing.items)
    value = thing.value()
    return Descriptor(thing.name, {}) if isinstance(value, Object) else value


def _property(message: Message, kind: str, raw: float) -> Any:
    if kind == "dtype":
        return dtype_name(int(raw))
    if kind == "bool":
        return bool(raw)
    if kind in ("float", "double"):
        return float(raw)
    if kind == "integer":
        return signed(int(raw))
    found = plain(message, int(raw))
    return 0 if found is None else found


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
