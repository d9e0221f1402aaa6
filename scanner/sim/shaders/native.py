"""The run-time library that compiled kernels call: built once with zig, called through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

from scanner.errors import UsageError

from .compiler import Compiled
from .driver import ENTRY

__all__ = ["Launcher", "Memory", "Result", "library_path"]

_SOURCES = Path(__file__).with_name("runtime")
_BUILD = ["-O2", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", "-lm"]


class _Geometry(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("group", ctypes.c_uint32 * 3),
        ("first", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
    )


class _Range(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


class _Violation(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint64),
        ("first_offset", ctypes.c_int64),
        ("notes", ctypes.c_uint64),
        ("first_note", ctypes.c_int64),
        ("limit", ctypes.c_int64),
    )


class _Call(ctypes.Structure):
    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("where", _Geometry),
        ("ranges", ctypes.POINTER(_Range)),
        ("range_count", ctypes.c_uint64),
        ("violations", ctypes.POINTER(_Violation)),
        ("local", ctypes.POINTER(_Range)),
        ("local_count", ctypes.c_uint64),
        ("cooperative", ctypes.c_int32),
        ("flush_denormals", ctypes.c_int32),
        ("seconds", ctypes.c_double),
        ("signal", ctypes.c_int32),
        ("fault_address", ctypes.c_uint64),
    )


class Memory(NamedTuple):
    """What an argument is bound to."""

    address: int
    """Of the first byte; 0 where nothing is bound."""
    length: int
    before: int = 0
    """Bytes of the same buffer that lie before it."""
    slack: int = 0
    """Bytes at the end of `length` that only the rounding of the allocation added."""


class Result:
    """What the run-time library said of a call."""

    def __init__(self, outcome: int, call: _Call, seen: ctypes.Array[_Violation]) -> None:
        self.outcome = ("ran", "faulted", "out of time", "too large")[outcome]
        self.signal = int(call.signal)
        self.fault_address = int(call.fault_address)
        self.violations = [
            (i, int(v.count), int(v.first_offset)) for i, v in enumerate(seen) if v.count
        ]
        """(site, how often, offset at the first time)."""
        self.notes = [(i, int(v.notes), int(v.first_note)) for i, v in enumerate(seen) if v.notes]
        """The same for accesses in the slack of a buffer, which took place."""


def _key() -> str:
    digest = hashlib.sha256(" ".join(_BUILD).encode())
    for path in sorted(_SOURCES.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def library_path(cache: Path) -> Path:
    """The built library in `cache`; building takes seconds, once.

    Raises UsageError where zig is not installed or fails.
    """
    path = cache / f"shader-runtime-{_key()}.{'dylib' if sys.platform == 'darwin' else 'so'}"
    if path.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{os.getpid()}-{path.name}")
    sources = [str(p) for p in sorted(_SOURCES.glob("*.c"))]
    command = [sys.executable, "-m", "ziglang", "cc", *_BUILD, "-o", str(partial), *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(
            f"the shader run-time library cannot be built: {done.stderr.strip()[-400:]}",
            remedy="install the simulator's dependencies: pip install 'opscan-metal[sim]'",
        )
    partial.replace(path)
    return path


@cache
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.opscan_execute.argtypes = [ctypes.POINTER(_Call)]
    library.opscan_execute.restype = ctypes.c_int
    llvm.load_library_permanently(str(path))
    return library


class Launcher:
    """One kernel's machine code in this process, ready to be called."""

    def __init__(self, compiled: Compiled, runtime: Path) -> None:
        self.compiled = compiled
        self._runtime = _load(runtime)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._jit = llvm.create_lljit_compiler(use_jit_link=True)
        builder = llvm.JITLibraryBuilder().add_object_img(compiled.object_code)
        builder = builder.add_current_process().export_symbol(ENTRY).export_symbol("opscan_bounds")
        for symbol, _ in compiled.arrays:
            builder = builder.export_symbol(symbol)
        self._code = builder.link(self._jit, "kernel")
        self._entry = int(self._code[ENTRY])
        slots = 2 * max(1, len(compiled.buffers))
        self._bounds = (ctypes.c_uint64 * slots).from_address(int(self._code["opscan_bounds"]))
        self._arrays = [(int(self._code[symbol]), size) for symbol, size in compiled.arrays]
        self._violations = (_Violation * max(1, len(compiled.sites)))()

    def _call(self, bound: Sequence[Memory], grid: Sequence[int], group: Sequence[int]) -> _Call:
        arguments = (ctypes.c_void_p * max(1, len(bound)))()
        for slot, memory in enumerate(bound):
            arguments[slot] = memory.address or None
            self._bounds[2 * slot] = memory.address - memory.before
            self._bounds[2 * slot + 1] = memory.address + memory.length - memory.slack
        call = _Call(entry=self._entry, cooperative=int(self.compiled.cooperative))
        call.arguments = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))
        call.where.grid[:] = list(grid)
        call.where.group[:] = list(group)
        call.flush_denormals = int(self.compiled.flush_denormals)
        return call

    def _local(self, bound: Sequence[Memory]) -> ctypes.Array[_Range]:
        """All threadgroup memory, declared or bound."""
        spans = [*self._arrays]
        spans += [
            (m.address, m.length)
            for m, space in zip(bound, self.compiled.spaces, strict=True)
            if space == 3
        ]
        return (_Range * len(spans))(*(_Range(at, at + size) for at, size in spans))

    def launch(
        self,
        bound: Sequence[Memory],
        grid: Sequence[int],
        group: Sequence[int],
        *,
        part: tuple[int, int],
        ranges: Sequence[tuple[int, int]] = (),
        seconds: float = 10.0,
    ) -> Result:
        """Runs threadgroups `part` (first, count) of a grid of threads.

        `bound` holds one entry an argument slot. `ranges` are the (first, past the last) addresses
        that pointers read from memory may reach, besides what is bound.
        """
        call = self._call(bound, grid, group)
        call.where.first, call.where.count = part
        allowed = [*ranges, *((m.address - m.before, m.address + m.length) for m in bound)]
        table = (_Range * max(1, len(allowed)))(*(_Range(*pair) for pair in allowed))
        call.ranges, call.range_count = table, len(allowed)
        local = self._local(bound)
        call.local, call.local_count = local, len(local)
        self._expect(bound)
        call.violations, call.seconds = self._violations, seconds
        outcome = self._runtime.opscan_execute(ctypes.byref(call))
        return Result(outcome, call, self._violations)

    def _expect(self, bound: Sequence[Memory]) -> None:
        """Clears what was seen, and says where each site's allocation ends."""
        ctypes.memset(self._violations, 0, ctypes.sizeof(self._violations))
        limits = {
            index: memory.before + memory.length
            for index, memory in zip(self.compiled.buffers, bound, strict=True)
            if memory.slack
        }
        if limits:
            for place, site in enumerate(self.compiled.sites):
                self._violations[place].limit = limits.get(site.argument, 0)
