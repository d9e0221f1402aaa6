"""Bitcode of a kernel → machine code of the host, kept on disk.

The steps: assembly of the module, everything inlined into the kernel, accesses checked and
exchanges numbered (`instrument`), externals defined (`functions`), the driver added, optimised by
LLVM, and emitted as a relocatable object.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import msgspec

from . import ir
from .driver import UnknownRole, write_driver
from .functions.conversions import TO_BFLOAT
from .functions.interface import Direction, External
from .functions.table import classify, define
from .instrument import Instrumented, Site, instrument
from .kernel import Argument, Kernel, read_kernel

__all__ = ["Compiled", "Compiler", "NotCompilable", "Options"]

_OMITTED_FEATURES = ("avx512bf16", "avxneconvert", "amx-bf16")
"""Their conversions to bfloat flush denormals whatever the mode."""


class NotCompilable(Exception):
    """Why a kernel cannot be run here."""


class Options(msgspec.Struct, frozen=True):
    """What changes the code that is made of a kernel."""

    check: bool = True
    """Check every access against the bounds of its binding."""
    direction: Direction = "nearest"
    """Where in the allowed error approximate functions end."""
    optimise: bool = False
    """Spend ten times as long on compiling, for launches of many threads."""


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
    static_memory: int
    """Bytes of threadgroup memory that the kernel declares itself."""


@dataclass(frozen=True)
class _Host:
    """The processor that code is made for."""

    triple: str
    layout: str
    cpu: str
    features: str

    def machine(self, effort: int = 0) -> Any:
        """A fresh target machine; `effort` is LLVM's optimisation level."""
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=effort, reloc="pic", codemodel="default"
        )


@lru_cache(maxsize=1)
def _host() -> _Host:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    for name in _OMITTED_FEATURES:
        if name in features:
            features[name] = False
    triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu)
    return _Host(triple, str(machine.target_data), cpu, features.flatten())


@lru_cache(maxsize=1)
def _lowering_version() -> str:
    """A hash of the sources that decide what code comes out."""
    digest = hashlib.sha256(str(llvm.llvm_version_info).encode())
    here = Path(__file__).parent
    for path in sorted([*here.glob("*.py"), *here.glob("functions/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _retarget(text: str, host: _Host) -> str:
    """Sets triple and layout, and drops attributes that speak of the GPU's compiler."""
    text = re.sub(
        r"^target datalayout = .*$", f'target datalayout = "{host.layout}"', text, flags=re.M
    )
    text = re.sub(r"^target triple = .*$", f'target triple = "{host.triple}"', text, flags=re.M)
    text = re.sub(
        r"^attributes (#\d+) = \{.*\}$", r"attributes \1 = { nounwind }", text, flags=re.M
    )
    text = re.sub(r"^(@\S+ = )internal (.*addrspace\(3\) global .*) undef", r"\1\2 zeroinitializer",
                  text, flags=re.M)  # fmt: skip
    return re.sub(r"^(@\S+ = )internal (.*addrspace\(3\))", r"\1\2", text, flags=re.M)


def _always_inline(text: str, symbol: str) -> str:
    """Marks every function but the kernel to be inlined, and nothing as recursive or cold."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("define ") and f"@{symbol}(" not in line:
            line = re.sub(r"^define (?:internal |weak_odr |linkonce_odr |private )?", "define internal ", line)  # fmt: skip
            line = re.sub(r"\)( [^()]*)?\{$", r") alwaysinline nounwind {", line)
        lines.append(line)
    return "\n".join(lines)


def _parse(text: str) -> Any:
    try:
        module = llvm.parse_assembly(text, context=llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise NotCompilable(f"LLVM refuses the lowered kernel: {error}") from error
    return module


def _inlined(text: str, symbol: str, machine: Any) -> str:
    """The module with every helper inlined into the kernel, and its structs taken apart."""
    if text.count("\ndefine ") > 1:
        text = _always_inline(text, symbol)
    module = _parse(text)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes.run(module, builder)
    return str(module)


def _refuse_unknown(text: str) -> None:
    """Raises NotCompilable if the kernel calls what has no lowering."""
    for external in _called(text):
        family = classify(external.name)
        if family is None:
            raise NotCompilable(f"calls {external.name}, which is not known here")
        if family.kind == "unsupported":
            raise NotCompilable(f"calls {external.name}: {family.note}")


def _called(text: str) -> list[External]:
    """The declared functions that something calls."""
    body = "\n".join(line for line in text.split("\n") if not line.startswith("declare "))
    return [e for e in ir.declarations(text) if f"@{e.name}(" in body]


def _definitions(text: str, direction: Direction) -> tuple[set[str], set[str]]:
    """(definitions of the externals that are called, what those need).

    Intrinsics that LLVM's own passes brought in need none.
    """
    definitions: set[str] = set()
    needs: set[str] = set()
    for external in _called(text):
        family = classify(external.name)
        if family is None or family.lower is None:
            continue
        definition = define(external, family, direction)
        definitions.add(definition.text.replace("@llvm.fmuladd.", "@opscan.fmuladd.", 1))
        needs.update(definition.needs)
    return definitions, needs


def _without_declarations(text: str) -> str:
    """Drops declarations that were lowered; renames intrinsics that were."""
    text = text.replace("@llvm.fmuladd.", "@opscan.fmuladd.")
    kept = []
    for line in text.split("\n"):
        if line.startswith("declare "):
            name = line.split("@", 1)[1].split("(")[0]
            family = classify(name)
            lowered = family is not None and family.lower is not None
            if name.startswith("opscan.") or lowered:
                continue
            line = re.sub(r" local_unnamed_addr| #\d+$", "", line)
        kept.append(line)
    return "\n".join(kept)


def _assemble(text: str, parts: set[str], present: str) -> str:
    """Adds definitions and declarations that the module does not have yet."""
    added, seen = [], set()
    for part in sorted(parts):
        name = part.split("@", 1)[1].split("(")[0]
        if name in seen or f"declare {part.split('declare ')[-1]}" in present:
            continue
        if part.startswith("declare ") and re.search(
            rf"^declare [^\n]*@{re.escape(name)}\(", present, re.M
        ):
            continue
        seen.add(name)
        added.append(part)
    return text + "\n" + "\n".join(added) + "\n"


def lower(bitcode: bytes, name: str, options: Options) -> tuple[str, Kernel, Instrumented]:
    """Assembly of a kernel ready for LLVM's optimiser, for this host.

    Raises NotCompilable with the reason.
    """
    host = _host()
    original = str(llvm.parse_bitcode(bitcode, context=llvm.create_context()))
    return lower_assembly(original, name, options, host.machine())


def lower_assembly(
    original: str, name: str, options: Options, machine: Any = None
) -> tuple[str, Kernel, Instrumented]:
    """The same from assembly in the AIR style."""
    machine = machine or _host().machine()
    try:
        kernel = read_kernel(original, name)
    except (ValueError, KeyError) as error:
        raise NotCompilable(f"the kernel's metadata cannot be read: {error}") from error
    _refuse_unknown(original)
    text = _inlined(_retarget(original, _host()), kernel.symbol, machine)
    made = instrument(text, kernel, check=options.check)
    try:
        driver = write_driver(kernel, made.text, cooperative=made.cooperative)
    except UnknownRole as error:
        raise NotCompilable(str(error)) from error
    definitions, needs = _definitions(made.text, options.direction)
    body = _without_declarations(made.text)
    body = re.sub(
        rf'^define (?:weak_odr )?(void @"?{re.escape(kernel.symbol)}"?\(.*\)).*\{{$',
        r"define internal \1 alwaysinline nounwind {", body, flags=re.M,
    )  # fmt: skip
    parts = definitions | needs | set(made.helpers)
    parts.add("declare ptr @opscan_violation(i32, i64, i64, i32) nounwind")
    parts.add(TO_BFLOAT)
    return _assemble(body + "\n" + driver, parts, body), kernel, made


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
    machine = _host().machine(2 if optimise else 0)
    module = _parse(text)
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
        static_memory=_static_memory(module),
    )


def _static_memory(module: Any) -> int:
    layout = llvm.create_target_data(_host().layout)
    return sum(
        int(layout.get_abi_size(g.global_value_type))
        for g in module.global_variables
        if "addrspace(3)" in str(g.type)
    )


class Compiler:
    """Compiles kernels, and keeps what it made in a folder that processes may share."""

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache

    def compile(self, bitcode: bytes, name: str, options: Options) -> Compiled:
        """Machine code for a kernel, from the cache where it is there.

        Raises NotCompilable with the reason.
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
        host = _host()
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
