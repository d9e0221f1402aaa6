"""C format strings. On Apple's arm64 all variable arguments are on the stack, 8 bytes each."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from scanner.sim.machine.cpu import Cpu

__all__ = ["Arguments", "formatted", "stack_arguments"]

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|z|j|t|q|L)?(?P<kind>[diouxXcsfFeEgGaAp@%])"
)
_LONG = frozenset({"l", "ll", "z", "j", "t", "q"})
_BITS = {"hh": 8, "h": 16}


class Arguments:
    """Variable arguments at an address, taken one by one."""

    def __init__(self, cpu: Cpu, address: int) -> None:
        self.memory = cpu.memory
        self._at = address

    def word(self) -> int:
        """The next one as 64 unsigned bits."""
        word = self.memory.u64(self._at)
        self._at += 8
        return word

    def signed(self, bits: int) -> int:
        """The next one as a signed integer."""
        word = self.word() & ((1 << bits) - 1)
        return word - (1 << bits) if word >> (bits - 1) else word

    def double(self) -> float:
        """The next one as a double."""
        return float(struct.unpack("<d", struct.pack("<Q", self.word()))[0])


def stack_arguments(cpu: Cpu) -> Arguments:
    """Variable arguments of the function that is being served."""
    return Arguments(cpu, cpu.sp)


def formatted(text: str, arguments: Arguments, describe: Callable[[int], str] | None = None) -> str:
    """What printf would print. `describe` gives the text of an object for `%@`."""

    def convert(found: re.Match[str]) -> str:
        kind = found["kind"]
        if kind == "%":
            return "%"
        prefix = _prefix(found, arguments)
        if kind == "@":
            word = arguments.word()
            return describe(word) if describe else hex(word)
        return _convert(prefix, kind, found["length"] or "", arguments)

    return _CONVERSION.sub(convert, text)


def _prefix(found: re.Match[str], arguments: Arguments) -> str:
    prefix = "%" + found["flags"]
    for part, mark in (("width", ""), ("precision", ".")):
        given = found[part]
        if given == "*":
            given = str(arguments.signed(32))
        if given is not None:
            prefix += mark + given
    return prefix


def _convert(prefix: str, kind: str, length: str, arguments: Arguments) -> str:
    bits = 64 if length in _LONG else _BITS.get(length, 32)
    if kind in "di":
        return (prefix + "d") % arguments.signed(bits)
    if kind in "ouxX":
        value = arguments.word() & ((1 << bits) - 1)
        return (prefix + ("d" if kind == "u" else kind)) % value
    if kind == "c":
        return chr(arguments.word() & 0xFF)
    if kind == "p":
        return hex(arguments.word())
    if kind == "s":
        address = arguments.word()
        return (prefix + "s") % (_limited(prefix, arguments, address) if address else "(null)")
    number = arguments.double()
    return number.hex() if kind in "aA" else (prefix + kind) % number


def _limited(prefix: str, arguments: Arguments, address: int) -> str:
    """A string argument; with a precision it need not be terminated."""
    _, dot, precision = prefix.partition(".")
    if not dot:
        return arguments.memory.text(address)
    raw = arguments.memory.read(address, min(int(precision or 0), arguments.memory.room(address)))
    return raw.split(b"\0")[0].decode(errors="replace")
