"""Character classes of the C locale, as Darwin's `_DefaultRuneLocale` holds them.

Bits and the place of the tables are from Apple's `<runetype.h>` and `<_ctype.h>`.
"""

from __future__ import annotations

import string
import struct

__all__ = ["CLASSES", "TABLES_AT", "tables"]

TABLES_AT = 60
"""Offset of the first table in the structure."""
_SIZE = 256
_ASCII = 128
_BITS: dict[str, int] = {
    string.ascii_letters: 0x100,
    string.digits: 0x400,
    string.digits + string.ascii_letters + string.punctuation: 0x800,
    string.ascii_lowercase: 0x1000,
    string.punctuation: 0x2000,
    " \t\n\v\f\r": 0x4000,
    string.ascii_uppercase: 0x8000,
    string.hexdigits: 0x10000,
    " \t": 0x20000,
    " " + string.digits + string.ascii_letters + string.punctuation: 0x40000,
}
_CONTROL = 0x200


def _classes() -> list[int]:
    table = [0] * _SIZE
    for members, bit in _BITS.items():
        for member in members:
            table[ord(member)] |= bit
    for code in [*range(32), 127]:
        table[code] |= _CONTROL
    for value, digit in enumerate(string.digits):
        table[ord(digit)] |= value
    return table


CLASSES = _classes()


def tables() -> bytes:
    """The three tables of 256 words: classes, lower case, upper case."""
    lower = [ord(chr(c).lower()) if c < _ASCII else c for c in range(_SIZE)]
    upper = [ord(chr(c).upper()) if c < _ASCII else c for c in range(_SIZE)]
    return struct.pack(f"<{3 * _SIZE}I", *CLASSES, *lower, *upper)
