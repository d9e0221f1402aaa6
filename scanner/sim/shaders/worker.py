"""The process that runs kernels, so that a kernel may only take this process with it.

Started by `client` with one socket as its only argument.
"""

from __future__ import annotations

import ctypes
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from scanner.errors import OpscanError

from .compiler import Compiled, Compiler, NotCompilableError, Options
from .library import Library
from .memory import map_region
from .native import Launcher, Memory
from .protocol import (
    Bound,
    Describe,
    Description,
    Done,
    Refused,
    Reply,
    Request,
    Run,
    Setup,
    receive,
    send,
)

__all__ = ["Worker", "main"]

_KEPT = 512
"""Kernels whose code stays in memory."""
_ALIGNMENT = 256
"""Of constant data and threadgroup memory, so that vector loads find it aligned."""


class Worker:
    """Compiles and runs kernels of one library."""

    def __init__(self, setup: Setup) -> None:
        section = setup.section
        self._library = Library(Path(section), Path(setup.index)) if section else None
        self._compiler = Compiler(Path(setup.cache))
        self._runtime = Path(setup.runtime)
        self._regions = [
            (map_region(r.descriptor, r.size, r.address), r.size) for r in setup.regions
        ]
        self._ranges = [(address, address + size) for address, size in self._regions]
        self._launchers: OrderedDict[tuple[str, str, Options], Launcher] = OrderedDict()

    def answer(self, request: Request) -> Reply:
        """Does what a message asks; a kernel that cannot be run is an answer, not an error."""
        try:
            if isinstance(request, Describe):
                return self._describe(self._launcher(request).compiled)
            if isinstance(request, Run):
                return self._run(request)
        except (NotCompilableError, OpscanError) as error:
            return Refused(str(error))
        raise TypeError(f"no answer to {type(request).__name__}")

    @staticmethod
    def _describe(compiled: Compiled) -> Description:
        return Description(
            compiled.buffers, compiled.spaces, compiled.sites, compiled.atomic,
            compiled.max_threads, sum(size for _, size in compiled.arrays),
        )  # fmt: skip

    def _launcher(self, request: Describe | Run) -> Launcher:
        kernel, options = request.kernel, request.options
        key = kernel, request.code, options
        if key in self._launchers:
            self._launchers.move_to_end(key)
            return self._launchers[key]
        bitcode = self._bitcode(kernel, request.code)
        launcher = Launcher(self._compiler.compile(bitcode, kernel, options), self._runtime)
        self._launchers[key] = launcher
        if len(self._launchers) > _KEPT:
            self._launchers.popitem(last=False)
        return launcher

    def _bitcode(self, kernel: str, code: str) -> bytes:
        if code:
            return Path(code).read_bytes()
        bitcode = self._library.bitcode(kernel) if self._library is not None else None
        if bitcode is None:
            raise NotCompilableError(
                "the library has no such kernel: its source is compiled at run time on a Mac"
            )
        return bitcode

    def _place(self, bound: Bound, kept: list[ctypes.Array[ctypes.c_char]]) -> Memory:
        if bound.region >= 0:
            start = self._regions[bound.region][0]
            return Memory(start + bound.offset, bound.length, bound.before, bound.slack)
        if not bound.threadgroup and bound.data is None:
            return Memory(0, 0)
        length = bound.length if bound.data is None else len(bound.data)
        room = ctypes.create_string_buffer(length + 2 * _ALIGNMENT)
        kept.append(room)
        address = -(-ctypes.addressof(room) // _ALIGNMENT) * _ALIGNMENT
        if bound.data is not None:
            ctypes.memmove(address, bound.data, length)
        return Memory(address, length)

    def _run(self, request: Run) -> Done:
        launcher = self._launcher(request)
        kept: list[ctypes.Array[ctypes.c_char]] = []
        bound: Sequence[Memory] = [self._place(b, kept) for b in request.bound]
        start = time.perf_counter()
        result = launcher.launch(
            bound, request.grid, request.group, part=(request.first, request.count),
            ranges=self._ranges, seconds=request.seconds,
        )  # fmt: skip
        return Done(
            result.outcome, result.signal, result.fault_address, time.perf_counter() - start,
            tuple(result.violations), tuple(result.notes),
        )  # fmt: skip


def main() -> None:
    """Answers messages on the given socket until its other end closes."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    decoder = msgspec.msgpack.Decoder(Request)
    worker: Worker | None = None
    while True:
        try:
            request = decoder.decode(receive(channel))
        except (EOFError, ConnectionError):
            return
        if isinstance(request, Setup):
            worker = Worker(request)
        elif worker is not None:
            send(channel, worker.answer(request))


if __name__ == "__main__":
    main()
