"""The table of contents of a compiled Metal library."""

from __future__ import annotations

import struct

__all__ = ["kernel_names"]

_MAGIC = b"MTLB"
_FUNCTION_LIST = 24
_END = b"ENDT"
_NAME = b"NAME"


def kernel_names(data: bytes) -> list[str]:
    """Names of all functions of a library, sorted.

    The list holds, for each function, its size and tagged fields; raises ValueError for bytes
    that are not a library.
    """
    if data[:4] != _MAGIC:
        raise ValueError("not a Metal library")
    (start,) = struct.unpack_from("<Q", data, _FUNCTION_LIST)
    (count,) = struct.unpack_from("<I", data, start)
    names = []
    at = start + 4
    for _ in range(count):
        (size,) = struct.unpack_from("<I", data, at)
        names += [_text(field) for tag, field in _fields(data, at + 4) if tag == _NAME]
        at += size
    return sorted(names)


def _fields(data: bytes, at: int) -> list[tuple[bytes, bytes]]:
    found = []
    while data[at : at + 4] != _END:
        (size,) = struct.unpack_from("<H", data, at + 4)
        found.append((data[at : at + 4], data[at + 6 : at + 6 + size]))
        at += 6 + size
    return found


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode()
