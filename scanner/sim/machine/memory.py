"""The address space of the emulated process.

Guest and host see the same pages: a region is host memory that the CPU maps at a guest address.
Snapshot files are mapped copy-on-write, so that processes share what none of them has changed.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BadAddress", "Memory", "Region"]

_FAILED = ctypes.c_void_p(-1).value
_NORESERVE = 0x40 if sys.platform == "darwin" else 0x4000
_FIXED = 0x10
_ANONYMOUS = mmap.MAP_ANONYMOUS
_PLACES = 64
"""Shared regions of one process that keep their places."""
PAGE = 0x4000
"""Page size of Apple silicon: 16 KiB."""


class BadAddress(Exception):  # noqa: N818
    """An access outside every region."""


@dataclass(frozen=True)
class Region:
    """Mapped memory: `size` bytes at guest address `start`, at host address `host`."""

    start: int
    size: int
    host: int
    name: str
    descriptor: int = -1
    """Of the memory's file, when other processes may map it too."""

    @property
    def end(self) -> int:
        """First guest address after the region."""
        return self.start + self.size


class Memory:
    """Regions by guest address; reads and writes by either side.

    Not thread safe. Raises `BadAddress` for an access that is not inside one region.
    """

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self._views: dict[int, memoryview] = {}
        self._files: dict[int, Path] = {}

    def add(self, start: int, size: int, name: str, file: Path | None = None) -> Region:
        """Maps zeroed memory, or a file's content copy-on-write, at a guest address.

        A file shorter than `size` fills the first part.
        """
        size = (size + PAGE - 1) // PAGE * PAGE
        region = Region(start, size, _map(size), name)
        if file is not None:
            self._files[start] = file
            _map_file(region.host, file)
        self._insert(region)
        return region

    def add_shared(self, size: int, name: str, hint: int) -> Region:
        """Maps zeroed memory whose guest address is its host address.

        Pointers stored in it mean the same to emulated and to native code, and to other
        processes that map the region's descriptor at the same address. It lies at `hint`, or at
        the next multiple of its size above that is free: near addresses that the system chooses,
        other processes would have libraries.
        """
        descriptor = _memory_file(size)
        host = _place(hint, size, descriptor)
        region = Region(host, size, host, name, descriptor)
        self._insert(region)
        return region

    def restore(self, region: Region) -> None:
        """Puts back a region's first content and gives changed pages back to the system."""
        _map(region.size, region.host, _FIXED)
        file = self._files.get(region.start)
        if file is not None:
            _map_file(region.host, file)

    def discard(self, region: Region) -> None:
        """Zeroes a shared region and gives its pages back to the system."""
        os.ftruncate(region.descriptor, 0)
        os.ftruncate(region.descriptor, region.size)

    def close(self) -> None:
        """Unmaps everything."""
        self._views.clear()
        for region in self.regions:
            _libc().munmap(region.host, region.size)
            if region.descriptor >= 0:
                os.close(region.descriptor)
        self.regions.clear()
        self._starts.clear()

    def region(self, address: int) -> Region:
        """The region that holds an address."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self.regions[index].end:
            return self.regions[index]
        raise BadAddress(f"{address:#x} is not mapped")

    def view(self, address: int, size: int) -> memoryview:
        """Writable bytes of a range."""
        region = self.region(address)
        start = address - region.start
        if size < 0 or start + size > region.size:
            raise BadAddress(f"{address:#x} + {size:#x} leaves {region.name}")
        return self._views[region.start][start : start + size]

    def host(self, address: int) -> int:
        """Host address of a guest address."""
        region = self.region(address)
        return region.host + address - region.start

    def room(self, address: int) -> int:
        """Bytes from an address to the end of its region."""
        return self.region(address).end - address

    def read(self, address: int, size: int) -> bytes:
        """Copies a range out."""
        return bytes(self.view(address, size))

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Copies a range in."""
        self.view(address, len(data))[:] = data

    def u32(self, address: int) -> int:
        """Little-endian unsigned 32-bit word."""
        return int(struct.unpack_from("<I", self.view(address, 4))[0])

    def u64(self, address: int) -> int:
        """Little-endian unsigned 64-bit word."""
        return int(struct.unpack_from("<Q", self.view(address, 8))[0])

    def set_u64(self, address: int, value: int) -> None:
        """Stores a little-endian 64-bit word, modulo 2^64."""
        struct.pack_into("<Q", self.view(address, 8), 0, value & 0xFFFFFFFFFFFFFFFF)

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """`count` unsigned 64-bit words."""
        return struct.unpack(f"<{count}Q", self.view(address, 8 * count))

    def text(self, address: int) -> str:
        """NUL-terminated string; bytes that are not UTF-8 are replaced."""
        region = self.region(address)
        host = region.host + address - region.start
        return ctypes.string_at(host).decode(errors="replace")

    def _insert(self, region: Region) -> None:
        index = bisect.bisect(self._starts, region.start)
        self._starts.insert(index, region.start)
        self.regions.insert(index, region)
        buffer = (ctypes.c_ubyte * region.size).from_address(region.host)
        self._views[region.start] = memoryview(buffer).cast("B")


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    ]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _place(hint: int, size: int, descriptor: int) -> int:
    """Maps a descriptor at the first free place from `hint` on; anywhere without a hint."""
    flags = mmap.MAP_SHARED | _NORESERVE
    for step in range(_PLACES if hint else 0):
        wanted = hint + step * size
        host = _mmap(wanted, size, flags, descriptor)
        if host == wanted:
            return host
        _libc().munmap(host, size)
    return _mmap(0, size, flags, descriptor)


def _memory_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("opscan")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _map(size: int, address: int = 0, flags: int = 0) -> int:
    return _mmap(address, size, flags | mmap.MAP_PRIVATE | _ANONYMOUS | _NORESERVE, -1)


def _map_file(host: int, file: Path) -> None:
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        if size:
            _mmap(host, size, _FIXED | mmap.MAP_PRIVATE | _NORESERVE, opened.fileno())


def _mmap(address: int, size: int, flags: int, descriptor: int) -> int:
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    found = _libc().mmap(address or None, size, protection, flags, descriptor, 0)
    if found is None or found == _FAILED:
        error = os.strerror(ctypes.get_errno())
        raise MemoryError(f"cannot map {size >> 20} MiB on {sys.platform}: {error}")
    return int(found)
