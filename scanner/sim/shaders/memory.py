"""Memory that a worker process sees too."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
from dataclasses import dataclass

__all__ = ["SharedRegion", "create_region", "map_region", "merge"]

_PAGE = mmap.PAGESIZE
_FIXED_NOREPLACE = 0x100000 if sys.platform == "linux" else 0x10


@dataclass(frozen=True)
class SharedRegion:
    """A file of memory, and the address at which kernels and their creator see it.

    Pointers that the host stored in buffers are right for the kernel only if `address` is the
    address they were made for.
    """

    descriptor: int
    address: int
    size: int

    def holds(self, address: int, length: int) -> bool:
        """Whether `length` bytes at `address` lie inside."""
        return self.address <= address and address + length <= self.address + self.size


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
    ]  # fmt: skip
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def map_region(descriptor: int, size: int, address: int = 0) -> int:
    """Maps a descriptor, at exactly `address` unless that is 0; returns where it lies.

    Raises OSError where the memory cannot be had there.
    """
    flags = mmap.MAP_SHARED | (_FIXED_NOREPLACE if address else 0)
    where = _libc().mmap(
        address or None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0
    )
    if where is None or where == ctypes.c_void_p(-1).value or (address and where != address):
        number = ctypes.get_errno()
        raise OSError(number, f"cannot map {size} bytes at {address:#x}: {os.strerror(number)}")
    return int(where)


def create_region(size: int, address: int = 0) -> SharedRegion:
    """New zeroed memory, taken from the system only where it is touched.

    The descriptor is the caller's to close. Raises OSError where there is none to be had.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("opscan")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
        return SharedRegion(descriptor, map_region(descriptor, size, address), size)
    except OSError:
        os.close(descriptor)
        raise


def release_region(region: SharedRegion) -> None:
    """Unmaps a region of this process and closes its descriptor."""
    _libc().munmap(region.address, region.size)
    os.close(region.descriptor)


def merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, end) spans joined where they overlap or touch, sorted."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
