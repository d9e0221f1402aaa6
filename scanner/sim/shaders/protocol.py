"""What the executor and its worker processes say to each other: length-prefixed MessagePack."""

from __future__ import annotations

import socket
import struct

import msgspec

from .compiler import Options
from .instrument import Site

__all__ = [
    "Bound",
    "Describe",
    "Description",
    "Done",
    "Refused",
    "RegionInfo",
    "Reply",
    "Request",
    "Run",
    "Setup",
    "receive",
    "send",
]

_LENGTH = struct.Struct("<Q")


class RegionInfo(msgspec.Struct, frozen=True):
    """Shared memory that the worker maps."""

    descriptor: int
    address: int
    """Where kernels must see it; 0 for anywhere."""
    size: int


class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first message: what the worker works with."""

    section: str
    """Path of the Metal library section; empty without one."""
    index: str
    cache: str
    """Folder for compiled kernels."""
    runtime: str
    """Path of the run-time library."""
    regions: tuple[RegionInfo, ...]


class Describe(msgspec.Struct, frozen=True, tag=True):
    """Compile a kernel and say how it is to be called."""

    kernel: str
    options: Options
    code: str = ""
    """File with the kernel's bitcode, if it is not the library's."""


class Bound(msgspec.Struct, frozen=True):
    """What one argument slot is bound to."""

    region: int = -1
    """Number of the region that holds it; -1 for data in the message or nothing."""
    offset: int = 0
    length: int = 0
    before: int = 0
    """Bytes before it that belong to the same buffer."""
    slack: int = 0
    """Bytes at its end that only the rounding of the allocation added."""
    data: bytes | None = None
    """Bytes that only the kernel reads."""
    threadgroup: bool = False
    """Threadgroup memory of `length` bytes."""


class Run(msgspec.Struct, frozen=True, tag=True):
    """Run a part of a launch."""

    kernel: str
    options: Options
    bound: tuple[Bound, ...]
    grid: tuple[int, int, int]
    """Threads."""
    group: tuple[int, int, int]
    first: int
    count: int
    """Threadgroups, by linear index."""
    seconds: float
    code: str = ""
    """As for `Describe`."""


class Description(msgspec.Struct, frozen=True, tag=True):
    """A kernel that can be run."""

    buffers: tuple[int, ...]
    spaces: tuple[int, ...]
    sites: tuple[Site, ...]
    atomic: bool
    max_threads: int
    static_memory: int


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A kernel that cannot be run."""

    reason: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """How the part of the launch ended."""

    outcome: str
    signal: int
    fault_address: int
    seconds: float
    violations: tuple[tuple[int, int, int], ...]
    """(site, how often, offset in bytes at the first time)."""
    notes: tuple[tuple[int, int, int], ...] = ()
    """The same for accesses in the slack."""


Request = Setup | Describe | Run
Reply = Description | Refused | Done


def send(channel: socket.socket, message: Request | Reply) -> None:
    """Sends one message. Raises OSError if nobody is there."""
    data = msgspec.msgpack.encode(message)
    channel.sendall(_LENGTH.pack(len(data)) + data)


def _exactly(channel: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def receive(channel: socket.socket) -> bytes:
    """The next message, still encoded. Raises EOFError at the end, TimeoutError when too late."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    return _exactly(channel, length)
