"""Runs recorded launches with the kernels of one release's Metal library."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from scanner.sim.trace import Binding, Launch

from .client import Client, WorkerLostError
from .compiler import Options
from .functions.interface import Direction
from .judgement import outcome_of
from .library import Library
from .memory import SharedRegion, create_region, merge, release_region
from .native import library_path
from .protocol import Bound, Describe, Description, Done, Refused, RegionInfo, Run, Setup
from .results import NotExecutable, Outcome, Ran

__all__ = ["Executor"]

_STAGING = 8 << 30
"""Bytes of address space for buffers that lie outside the shared regions."""
_KEPT = 256 << 20
"""Bytes of it that may stay in use between launches."""
_SPLIT_FROM = 1 << 15
"""Threads from which a launch is worth two workers."""
_OPTIMISE_FROM = 1 << 24
"""Threads from which optimising the code is worth its time."""
_MAX_THREADS = 1024
_ALIGNMENT = 4096


class _Staging:
    """Copies of host memory that the worker can reach, for one launch."""

    def __init__(self, region: SharedRegion, number: int, spans: list[tuple[int, int]]) -> None:
        self._number = number
        self._places: list[tuple[int, int, int]] = []  # host start, host end, offset
        offset = 0
        for start, end in merge(spans):
            self._places.append((start, end, offset + start % 256))
            offset += -(-(end - start + 256) // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        self._base = region.address
        self.used = offset
        for start, end, at in self._places:
            ctypes.memmove(self._base + at, start, end - start)

    def bound(self, binding: Binding) -> Bound:
        """Where a staged binding's copy lies."""
        for start, end, at in self._places:
            if start <= binding.address and binding.address + binding.length <= end:
                offset = at + binding.address - start
                return Bound(self._number, offset, binding.length, binding.before, binding.slack)
        raise KeyError(binding.index)

    def copy_back(self) -> None:
        """Brings results home."""
        for start, end, at in self._places:
            ctypes.memmove(start, self._base + at, end - start)


class Executor:
    """Runs launches; each outcome is a value, and no shader can hurt this process.

    `regions` are the memory that buffers usually lie in; what lies elsewhere in this process is
    copied there and back. `direction` says where in their error approximate functions end, and may
    be changed between launches (`directions("worst")` are those to try); `seconds` is the processor
    time of one launch. The first executor of a cache folder builds the run-time library, which
    takes seconds.

    Raises UsageError where zig is missing, DataError where the section is not a Metal library.
    """

    def __init__(
        self,
        section: Path | None,
        cache: Path,
        *,
        index: Path | None = None,
        regions: Sequence[SharedRegion] = (),
        workers: int = 2,
        seconds: float = 10.0,
        direction: Direction = "nearest",
        check: bool = True,
    ) -> None:
        at = index or cache / f"{section.name if section else ''}.index"
        cache.mkdir(parents=True, exist_ok=True)
        if section is not None:
            Library(section, at)  # makes the index, so that no worker has to
        runtime = library_path(cache)
        self._staging = create_region(_STAGING)
        self._regions = [*regions, self._staging]
        self.direction = direction
        self._seconds, self._check = seconds, check
        told = tuple(RegionInfo(r.descriptor, r.address, r.size) for r in regions)
        staging = RegionInfo(self._staging.descriptor, 0, self._staging.size)
        setup = Setup(
            str(section or ""), str(at), str(cache / "kernels"), str(runtime), (*told, staging)
        )
        self._clients = [Client(setup) for _ in range(max(1, workers))]
        self._known: dict[tuple[str, str, Options], Description | NotExecutable] = {}

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers and gives the staging memory back."""
        for client in self._clients:
            client.stop()
        release_region(self._staging)

    def describe(self, kernel: str, code: str = "") -> Description | NotExecutable:
        """How a kernel is called, or why it cannot be."""
        return self._description(Describe(kernel, Options(self._check, self.direction), code))

    def run(self, launch: Launch, code: str = "") -> Outcome:
        """Runs one launch to its end; results are in the bound buffers when it returns.

        `code` is a file with the kernel's bitcode, for a kernel that the library lacks.
        """
        group = launch.threadgroup
        grid = launch.grid
        if launch.mode == "threadgroups":
            grid = (grid[0] * group[0], grid[1] * group[1], grid[2] * group[2])
        if not all(grid):
            return Ran()
        if not all(group) or group[0] * group[1] * group[2] > _MAX_THREADS:
            return NotExecutable(f"a threadgroup of {group} threads is not allowed")
        threads = grid[0] * grid[1] * grid[2]
        options = Options(self._check, self.direction, threads >= _OPTIMISE_FROM)
        kernel = Describe(launch.kernel, options, code)
        known = self._description(kernel)
        if isinstance(known, NotExecutable):
            return known
        return self._run(launch, known, kernel, grid)

    def _description(self, kernel: Describe) -> Description | NotExecutable:
        key = kernel.kernel, kernel.code, kernel.options
        if key not in self._known:
            reply = self._ask(kernel)
            if isinstance(reply, WorkerLostError):
                return NotExecutable(str(reply))
            assert not isinstance(reply, Done)
            if isinstance(reply, Refused):
                self._known[key] = NotExecutable(reply.reason)
            else:
                self._known[key] = reply
        return self._known[key]

    def _ask(self, request: Describe) -> Description | Refused | Done | WorkerLostError:
        try:
            self._clients[0].post(request)
            return self._clients[0].collect()
        except WorkerLostError as error:
            return error

    def _run(
        self, launch: Launch, known: Description, kernel: Describe, grid: tuple[int, int, int]
    ) -> Outcome:
        bindings = {b.index: b for b in launch.bindings if b.kind != "threadgroup"}
        local = {b.index: b for b in launch.bindings if b.kind == "threadgroup"}
        outside = [
            (b.address - b.before, b.address + b.length)
            for i in known.buffers
            if (b := bindings.get(i)) and b.kind == "buffer" and b.length and not self._inside(b)
        ]
        if sum(end - start for start, end in outside) > _STAGING // 2:
            return NotExecutable("its buffers outside shared memory are too large to copy")
        staging = _Staging(self._staging, len(self._regions) - 1, outside)
        bound = tuple(
            _threadgroup(local.get(index)) if space == 3
            else self._bound(bindings.get(index), staging)
            for index, space in zip(known.buffers, known.spaces, strict=True)
        )  # fmt: skip
        request = Run(
            kernel.kernel, kernel.options, bound, grid, launch.threadgroup, 0, 0, self._seconds,
            kernel.code,
        )  # fmt: skip
        done = self._share(request, known)
        if isinstance(done, WorkerLostError):
            return NotExecutable(str(done))
        staging.copy_back()
        if staging.used > _KEPT:
            os.ftruncate(self._staging.descriptor, 0)
            os.ftruncate(self._staging.descriptor, self._staging.size)
        return outcome_of(launch.kernel, known, bound, done, self._seconds)

    def _inside(self, binding: Binding) -> bool:
        return any(_lies_in(binding, r) for r in self._regions[:-1])

    def _bound(self, binding: Binding | None, staging: _Staging) -> Bound:
        if binding is None or not binding.length:
            return Bound()
        if binding.kind == "bytes":
            return Bound(data=ctypes.string_at(binding.address, binding.length))
        for number, region in enumerate(self._regions[:-1]):
            if _lies_in(binding, region):
                offset = binding.address - region.address
                return Bound(number, offset, binding.length, binding.before, binding.slack)
        return staging.bound(binding)

    def _share(self, request: Run, known: Description) -> list[Done | Refused] | WorkerLostError:
        """Runs all threadgroups, on several workers where they do not depend on each other."""
        groups = 1
        for size, width in zip(request.grid, request.group, strict=True):
            groups *= -(-size // width)
        threads = request.grid[0] * request.grid[1] * request.grid[2]
        several = threads >= _SPLIT_FROM and not known.atomic
        clients = self._clients[: min(groups, len(self._clients))] if several else self._clients[:1]
        lost: WorkerLostError | None = None
        done: list[Done | Refused] = []
        posted = []
        for i, client in enumerate(clients):
            first, last = groups * i // len(clients), groups * (i + 1) // len(clients)
            try:
                client.post(_part(request, first, last - first), self._seconds)
                posted.append(client)
            except WorkerLostError as error:
                lost = error
        for client in posted:
            try:
                reply = client.collect()
                assert not isinstance(reply, Description)
                done.append(reply)
            except WorkerLostError as error:
                lost = error
        return lost or done


def _part(request: Run, first: int, count: int) -> Run:
    return msgspec.structs.replace(request, first=first, count=count)


def _threadgroup(binding: Binding | None) -> Bound:
    return Bound(length=binding.length if binding else 0, threadgroup=True)


def _lies_in(binding: Binding, region: SharedRegion) -> bool:
    return region.holds(binding.address - binding.before, binding.before + binding.length)
