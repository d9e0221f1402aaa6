"""NSNumber."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.sim.objc.methods import Float, Object, Result, class_method, method

if TYPE_CHECKING:
    from scanner.sim.objc.message import Message
    from scanner.sim.objc.methods import Class

__all__ = ["NSNumber"]


def _signed(word: int, bits: int) -> int:
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> (bits - 1) else word


class NSNumber(Object):
    """A number that remembers whether it is a bool, an int or a float."""

    name = "NSNumber"

    def __init__(self, number: float | int | bool = 0) -> None:
        super().__init__()
        self.number = number

    def value(self) -> float | int | bool:
        """The number."""
        return self.number

    @class_method("numberWithInteger:", "numberWithLongLong:", "numberWithLong:")
    @staticmethod
    def make_long(_kind: Class, message: Message) -> Result:
        """From 64 signed bits."""
        return NSNumber(message.signed(0))

    @class_method("numberWithInt:")
    @staticmethod
    def make_int(_kind: Class, message: Message) -> Result:
        """From 32 signed bits."""
        return NSNumber(_signed(message.word(0), 32))

    @class_method("numberWithUnsignedInt:")
    @staticmethod
    def make_unsigned_int(_kind: Class, message: Message) -> Result:
        """From 32 unsigned bits."""
        return NSNumber(message.word(0) & 0xFFFFFFFF)

    @class_method(
        "numberWithUnsignedInteger:", "numberWithUnsignedLong:", "numberWithUnsignedLongLong:"
    )
    @staticmethod
    def make_unsigned(_kind: Class, message: Message) -> Result:
        """From 64 unsigned bits."""
        return NSNumber(message.word(0))

    @class_method("numberWithBool:")
    @staticmethod
    def make_bool(_kind: Class, message: Message) -> Result:
        """From a BOOL."""
        return NSNumber(message.flag(0))

    @class_method("numberWithDouble:")
    @staticmethod
    def make_double(_kind: Class, message: Message) -> Result:
        """From a double."""
        return NSNumber(message.cpu.d(0))

    @class_method("numberWithFloat:")
    @staticmethod
    def make_float(_kind: Class, message: Message) -> Result:
        """From a float."""
        return NSNumber(message.cpu.s(0))

    @method("initWithInteger:", "initWithLong:", "initWithLongLong:")
    def initialise(self, message: Message) -> Result:
        """From 64 signed bits."""
        self.number = message.signed(0)
        return self

    @method("intValue", "integerValue", "longValue", "longLongValue", "boolValue")
    def as_signed(self, message: Message) -> Result:
        """The number, cut to an integer."""
        return int(self.number)

    @method(
        "unsignedIntValue", "unsignedIntegerValue", "unsignedLongValue", "unsignedLongLongValue"
    )
    def as_unsigned(self, message: Message) -> Result:
        """The number, cut to an integer."""
        return int(self.number)

    @method("doubleValue")
    def as_double(self, message: Message) -> Result:
        """The number as a double."""
        return float(self.number)

    @method("floatValue")
    def as_float(self, message: Message) -> Result:
        """The number as a float."""
        return Float(float(self.number))

    @method("isEqual:", "isEqualToNumber:")
    def equals(self, message: Message) -> Result:
        """Whether two numbers are the same."""
        other = message.object(0)
        return isinstance(other, NSNumber) and other.number == self.number

    @method("stringValue", "description")
    def describe(self, message: Message) -> Result:
        """The number as Foundation prints it."""
        number = int(self.number) if isinstance(self.number, bool) else self.number
        return message.runtime.string(f"{number:g}" if isinstance(number, float) else str(number))
