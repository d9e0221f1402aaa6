"""Finds a kernel's bitcode in a Metal library section (`MTLB`), by way of a small mapped index.

Layout of a library, as read from the published wheels: a header of nine little-endian u64 at byte
16 (file size, then offset and size of the function list, the public and the private metadata, and
the bitcode), a function list of tagged records (NAME, HASH, MDSZ, OFFT …), and one module of LLVM
bitcode a kernel, each inside a wrapper (magic 0x0B17C0DE, version, offset, size, processor).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scanner.errors import DataError

__all__ = ["INDEX_VERSION", "Entry", "Library", "write_index"]

INDEX_VERSION = 1
_MAGIC = b"OPSCANKI"
_HEAD = struct.Struct("<8sIIQ")  # magic, version, kernels, bytes of the library
_RECORD = struct.Struct("<IIQI")  # name offset, name length, module offset, module size
_WRAPPER = struct.Struct("<5I")
_WRAPPER_MAGIC = 0x0B17C0DE
_RAW_MAGIC = b"BC\xc0\xde"


@dataclass(frozen=True)
class Entry:
    """Where a kernel's wrapped bitcode lies in the section, in bytes."""

    name: str
    offset: int
    size: int


def _tags(data: memoryview, start: int) -> dict[bytes, bytes]:
    tags: dict[bytes, bytes] = {}
    while (tag := bytes(data[start : start + 4])) != b"ENDT":
        (length,) = struct.unpack_from("<H", data, start + 4)
        tags[tag] = bytes(data[start + 6 : start + 6 + length])
        start += 6 + length
    return tags


def _entries(data: memoryview) -> Iterator[Entry]:
    head = struct.unpack_from("<9Q", data, 16)
    functions, bitcode = head[1], head[7]
    (count,) = struct.unpack_from("<I", data, functions)
    at = functions + 4
    for _ in range(count):
        (size,) = struct.unpack_from("<I", data, at)
        tags = _tags(data, at + 4)
        at += size
        module = struct.unpack("<3Q", tags[b"OFFT"])[2]
        (length,) = struct.unpack("<Q", tags[b"MDSZ"])
        yield Entry(tags[b"NAME"].rstrip(b"\0").decode(), bitcode + module, length)


def read_entries(data: memoryview) -> list[Entry]:
    """The kernels of a library section, by name.

    Raises DataError where the bytes are not a Metal library, or end too early.
    """
    if bytes(data[:4]) != b"MTLB":
        raise DataError("the section is not a Metal library", remedy="prepare the release again")
    try:
        entries = sorted(_entries(data), key=lambda entry: entry.name)
    except (struct.error, KeyError) as error:
        raise DataError(
            "the Metal library is cut short", remedy="prepare the release again"
        ) from error
    if any(e.offset + e.size > len(data) for e in entries):
        raise DataError("the Metal library is cut short", remedy="prepare the release again")
    return entries


def write_index(section: Path, index: Path) -> None:
    """Writes the index of a library section, atomically."""
    with section.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        view = memoryview(data)
        try:
            entries = read_entries(view)
        finally:
            view.release()
        size = len(data)
    names, records = bytearray(), bytearray()
    for entry in entries:
        name = entry.name.encode()
        records += _RECORD.pack(len(names), len(name), entry.offset, entry.size)
        names += name
    partial = index.with_name(f"{index.name}.{os.getpid()}")
    partial.write_bytes(_HEAD.pack(_MAGIC, INDEX_VERSION, len(entries), size) + records + names)
    partial.replace(index)


class Library:
    """A library section and its index, both mapped: opening costs no reading.

    The index is made where it is missing, of another version, or of another library.
    """

    def __init__(self, section: Path, index: Path | None = None) -> None:
        self.section = section
        self.index = index or section.with_name(section.name + ".index")
        self._data = _map(section)
        if not self._usable():
            write_index(section, self.index)
        self._table = _map(self.index)
        self._count = _HEAD.unpack_from(self._table)[2]

    def _usable(self) -> bool:
        try:
            with self.index.open("rb") as file:
                head = _HEAD.unpack(file.read(_HEAD.size))
        except (OSError, struct.error):
            return False
        return head[:2] == (_MAGIC, INDEX_VERSION) and head[3] == len(self._data)

    def __len__(self) -> int:
        return int(self._count)

    def _entry(self, number: int) -> Entry:
        start, length, offset, size = _RECORD.unpack_from(
            self._table, _HEAD.size + _RECORD.size * number
        )
        names = _HEAD.size + _RECORD.size * len(self)
        name = self._table[names + start : names + start + length].decode()
        return Entry(name, offset, size)

    def names(self) -> Iterator[str]:
        """All kernels, sorted."""
        return (self._entry(i).name for i in range(len(self)))

    def find(self, name: str) -> Entry | None:
        """Where a kernel lies, or None."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            entry = self._entry(middle)
            if entry.name == name:
                return entry
            low, high = (middle + 1, high) if entry.name < name else (low, middle)
        return None

    def bitcode(self, name: str) -> bytes | None:
        """A kernel's LLVM bitcode without its wrapper, or None if the library lacks it.

        Raises DataError where the library holds something else there.
        """
        entry = self.find(name)
        if entry is None:
            return None
        return unwrap(self._data[entry.offset : entry.offset + entry.size])

    def digest(self, name: str) -> str:
        """SHA-256 of a kernel's bitcode; empty if the library lacks it."""
        bitcode = self.bitcode(name)
        return hashlib.sha256(bitcode).hexdigest() if bitcode is not None else ""


def unwrap(module: bytes) -> bytes:
    """The bitcode inside a wrapper; raw bitcode as it is. Raises DataError for anything else."""
    if module[:4] == _RAW_MAGIC:
        return module
    if len(module) >= _WRAPPER.size:
        magic, _, offset, size, _ = _WRAPPER.unpack_from(module)
        if magic == _WRAPPER_MAGIC and offset + size <= len(module):
            return module[offset : offset + size]
    raise DataError("a kernel is not LLVM bitcode", remedy="prepare the release again")


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read {path}: {error}", remedy="prepare the release again"
        ) from error
