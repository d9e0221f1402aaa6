"""NSString and what is close to it: NSURL, NSData, NSError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.sim.objc.methods import Object, Result, class_method, method
from scanner.sim.osenv.printf import formatted, stack_arguments

if TYPE_CHECKING:
    from scanner.sim.objc.message import Message
    from scanner.sim.objc.methods import Class

__all__ = ["NSURL", "NSData", "NSError", "NSString"]


class NSString(Object):
    """A string."""

    name = "NSString"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text
        self._bytes_at = 0

    def value(self) -> str:
        """The text."""
        return self.text

    @class_method("stringWithUTF8String:", "stringWithCString:encoding:")
    @staticmethod
    def from_c(_kind: Class, message: Message) -> Result:
        """From a NUL-terminated string."""
        return NSString(message.cpu.memory.text(message.word(0)))

    @class_method("stringWithFormat:")
    @staticmethod
    def from_format(_kind: Class, message: Message) -> Result:
        """From a format; all variable arguments are on the stack."""
        runtime = message.runtime
        arguments = stack_arguments(message.cpu)
        text = formatted(
            message.text(0), arguments, lambda address: _described(runtime.find(address))
        )
        return NSString(text)

    @method("UTF8String", "cString")
    def to_c(self, message: Message) -> Result:
        """Address of the text as a NUL-terminated string, in memory of its own."""
        if not self._bytes_at:
            raw = self.text.encode() + b"\0"
            self._bytes_at = message.runtime.allocate(len(raw))
            message.cpu.memory.write(self._bytes_at, raw)
        return self._bytes_at

    @method("length")
    def length(self, message: Message) -> Result:
        """Number of UTF-16 units."""
        return len(self.text.encode("utf-16-le")) // 2

    @method("isEqualToString:", "isEqual:")
    def equals(self, message: Message) -> Result:
        """Whether the texts are the same."""
        other = message.object(0)
        return isinstance(other, NSString) and other.text == self.text

    @method("hasPrefix:")
    def has_prefix(self, message: Message) -> Result:
        """Whether the text starts with another."""
        return self.text.startswith(message.text(0))

    @method("containsString:")
    def contains(self, message: Message) -> Result:
        """Whether another text occurs."""
        return message.text(0) in self.text

    @method("stringByAppendingString:")
    def append(self, message: Message) -> Result:
        """Both texts."""
        return NSString(self.text + message.text(0))

    @method("copy", "description")
    def itself(self, message: Message) -> Result:
        """Strings do not change."""
        return self


class NSURL(Object):
    """A file's address."""

    name = "NSURL"

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path

    @class_method("fileURLWithPath:", "URLWithString:")
    @staticmethod
    def from_path(_kind: Class, message: Message) -> Result:
        """From a path."""
        return NSURL(message.text(0))


class NSData(Object):
    """Bytes."""

    name = "NSData"

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self.data = data

    def value(self) -> bytes:
        """The bytes."""
        return self.data

    @class_method("dataWithBytes:length:", "dataWithBytesNoCopy:length:freeWhenDone:")
    @staticmethod
    def from_bytes(_kind: Class, message: Message) -> Result:
        """A copy of memory."""
        return NSData(message.cpu.memory.read(message.word(0), message.word(1)))

    @method("length")
    def length(self, message: Message) -> Result:
        """Number of bytes."""
        return len(self.data)


class NSError(Object):
    """Why something did not work."""

    name = "NSError"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text

    @method("localizedDescription", "description")
    def describe(self, message: Message) -> Result:
        """The reason."""
        return message.runtime.string(self.text)

    @method("code")
    def code(self, message: Message) -> Result:
        """Always 1."""
        return 1


def _described(thing: Object | None) -> str:
    value = None if thing is None else thing.value()
    if value is None:
        return "(null)"
    return f"<{thing.name}>" if isinstance(value, Object) and thing else str(value)
