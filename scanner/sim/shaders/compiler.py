"""Lowered kernels → machine code of the host, kept on disk."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import msgspec

from .host import this_host
from .instrument import Instrumented, Site
from .kernel import Argument, Kernel
from .lowering import NotCompilableError, Options, lower, lower_assembly, parse

__all__ = [
    "Compiled",
    "Compiler",
    "NotCompilableError",
    "Options",
    "compile_text",
    "lower",
    "lower_assembly",
]


class Compiled(msgspec.Struct, frozen=True):
    """Machine code, and what is needed to call it."""

    object_code: bytes
    buffers: tuple[int, ...]
    """Buffer index of every argument slot."""
    spaces: tuple[int, ...]
    """Address space of every slot: 3 is threadgroup memory."""
    sites: tuple[Site, ...]
    cooperative: bool
    atomic: bool
    """Whether threadgroups may depend on each other, so that a launch must not be split."""
    flush_denormals: bool
    max_threads: int
    arrays: tuple[tuple[str, int], ...]
    """Symbol and bytes of every threadgroup array that the kernel declares itself."""


@lru_cache(maxsize=1)
def _lowering_version() -> str:
    """A hash of the sources that decide what code comes out."""
    digest = hashlib.sha256(str(llvm.llvm_version_info).encode())
    here = Path(__file__).parent
    for path in sorted([*here.glob("*.py"), *here.glob("functions/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _optimise(module: Any, machine: Any) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


def _tidy(module: Any, machine: Any) -> None:
    """Only what undoes the lowering's own clumsiness."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    passes.run(module, llvm.create_pass_builder(machine, tuning))


def compile_text(text: str, kernel: Kernel, made: Instrumented, *, optimise: bool) -> Compiled:
    """Makes machine code of lowered assembly."""
    machine = this_host().machine(2 if optimise else 0)
    module = parse(text)
    (_optimise if optimise else _tidy)(module, machine)
    buffers: tuple[Argument, ...] = kernel.buffers
    return Compiled(
        object_code=machine.emit_object(module),
        buffers=tuple(a.index for a in buffers),
        spaces=tuple(a.space for a in buffers),
        sites=made.sites,
        cooperative=made.cooperative,
        atomic=made.atomic,
        flush_denormals=kernel.flush_denormals,
        max_threads=kernel.max_threads,
        arrays=_arrays(module),
    )


def _arrays(module: Any) -> tuple[tuple[str, int], ...]:
    layout = llvm.create_target_data(this_host().layout)
    return tuple(
        (str(g.name), int(layout.get_abi_size(g.global_value_type)))
        for g in module.global_variables
        if "addrspace(3)" in str(g.type)
    )


class Compiler:
    """Compiles kernels, and keeps what it made in a folder that processes may share."""

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache

    def compile(self, bitcode: bytes, name: str, options: Options) -> Compiled:
        """Machine code for a kernel, from the cache where it is there.

        Raises NotCompilableError with the reason.
        """
        path = self._path(bitcode, name, options)
        if path is not None and (found := _read(path)) is not None:
            return found
        compiled = compile_text(*lower(bitcode, name, options), optimise=options.optimise)
        if path is not None:
            _write(path, compiled)
        return compiled

    def _path(self, bitcode: bytes, name: str, options: Options) -> Path | None:
        if self._cache is None:
            return None
        host = this_host()
        digest = hashlib.sha256(bitcode)
        for part in (name, repr(options), host.cpu, host.features, _lowering_version()):
            digest.update(b"\0" + part.encode())
        key = digest.hexdigest()
        return self._cache / key[:2] / key[2:40]


def _read(path: Path) -> Compiled | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def _write(path: Path, compiled: Compiled) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(msgspec.msgpack.encode(compiled))
    partial.replace(path)
