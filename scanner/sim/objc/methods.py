"""Objects that answer messages.

A class of objects is a Python class; what it answers is marked in it:

    class NSArray(Object):
        @method("count")
        def count(self, message: Message) -> Result: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from scanner.sim.objc.message import Message

__all__ = ["Class", "Float", "Object", "Result", "class_method", "method"]


class Float:
    """A single-precision result."""

    def __init__(self, value: float) -> None:
        self.value = value


Result = Any
"""None (0), bool, int, tuple of two ints, float (double), `Float` or `Object`."""

Answer = Callable[[Any, "Message"], Result]
_F = TypeVar("_F", bound=Callable[..., Any])


def method(*selectors: str) -> Callable[[_F], _F]:
    """Marks a function as the answer to one or several selectors."""
    return _mark("_selectors", selectors)


def class_method(*selectors: str) -> Callable[[_F], _F]:
    """Marks a function `(class, message)` as what the class object answers."""
    return _mark("_class_selectors", selectors)


def _mark(attribute: str, selectors: tuple[str, ...]) -> Callable[[_F], _F]:
    def mark(function: _F) -> _F:
        setattr(function, attribute, selectors)
        return function

    return mark


class Object:
    """An object of the imitated runtime. `address` is what emulated code holds of it."""

    name: str = "NSObject"
    answers: ClassVar[dict[str, Answer]] = {}
    class_answers: ClassVar[dict[str, Answer]] = {}

    def __init__(self) -> None:
        self.address = 0
        self.references = 1

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.answers = dict(cls.answers)
        cls.class_answers = dict(cls.class_answers)
        for item in vars(cls).values():
            for selector in getattr(item, "_selectors", ()):
                cls.answers[selector] = item
            for selector in getattr(item, "_class_selectors", ()):
                cls.class_answers[selector] = item

    def otherwise(self, message: Message) -> Result:
        """Answers what no method is marked for; by default nothing is made up."""
        raise message.missing(self.name)

    def retain(self) -> None:
        """One more reference."""
        self.references += 1

    def release(self) -> None:
        """One reference less; at none, `deallocate`."""
        self.references -= 1
        if self.references == 0:
            self.deallocate()

    def deallocate(self) -> None:
        """What happens when the last reference goes; the object itself is kept."""

    def value(self) -> Any:
        """The Python value that a recording keeps of the object; by default the object."""
        return self


class Class(Object):
    """A class object: makes instances and answers class methods."""

    def __init__(self, name: str, make: Callable[[], Object], answers: dict[str, Answer]) -> None:
        super().__init__()
        self.name = name
        self.make = make
        self.own = answers
