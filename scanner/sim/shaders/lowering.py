"""A kernel in AIR → assembly for this host, ready for LLVM's optimiser.

Everything is inlined into the kernel, its accesses are checked and its exchanges numbered
(`instrument`), its externals defined (`functions`), and the driver added.
"""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
import msgspec

from . import ir
from .driver import UnknownRoleError, write_driver
from .functions.conversions import TO_BFLOAT
from .functions.interface import Direction, External
from .functions.table import classify, define
from .host import Host, this_host
from .instrument import Instrumented, instrument
from .kernel import Kernel, read_kernel

__all__ = ["NotCompilableError", "Options", "lower", "lower_assembly", "parse"]


class NotCompilableError(Exception):
    """Why a kernel cannot be run here."""


class Options(msgspec.Struct, frozen=True):
    """What changes the code that is made of a kernel."""

    check: bool = True
    """Check every access against the bounds of its binding."""
    direction: Direction = "nearest"
    """Where in the allowed error approximate functions end."""
    optimise: bool = False
    """Spend ten times as long on compiling, for launches of many threads."""


_LINKAGE = "internal|weak_odr|linkonce_odr|private"


def _retarget(text: str, host: Host) -> str:
    """Sets triple and layout, and drops attributes that speak of the GPU's compiler.

    What is convergent stays so: a copy of a call in another branch would be another exchange.
    """
    text = re.sub(
        r"^target datalayout = .*$", f'target datalayout = "{host.layout}"', text, flags=re.M
    )
    text = re.sub(r"^target triple = .*$", f'target triple = "{host.triple}"', text, flags=re.M)
    text = re.sub(r"^attributes (#\d+) = \{(.*)\}$", _attributes, text, flags=re.M)
    text = re.sub(r"^(@\S+ = )internal (.*addrspace\(3\) global .*) undef", r"\1\2 zeroinitializer",
                  text, flags=re.M)  # fmt: skip
    return re.sub(r"^(@\S+ = )internal (.*addrspace\(3\))", r"\1\2", text, flags=re.M)


def _attributes(match: re.Match[str]) -> str:
    kept = "nounwind convergent" if "convergent" in match[2] else "nounwind"
    return f"attributes {match[1]} = {{ {kept} }}"


def _always_inline(text: str, symbol: str) -> str:
    """Marks every function but the kernel to be inlined, and nothing as recursive or cold."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("define ") and f"@{symbol}(" not in line:
            line = re.sub(rf"^define (?:{_LINKAGE} )?", "define internal ", line)
            line = re.sub(r"\)( [^()]*)?\{$", r") alwaysinline nounwind {", line)
        lines.append(line)
    return "\n".join(lines)


def parse(text: str) -> Any:
    """A module from assembly. Raises NotCompilableError with what LLVM says of it."""
    try:
        module = llvm.parse_assembly(text, context=llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise NotCompilableError(f"LLVM refuses the lowered kernel: {error}") from error
    return module


def _inlined(text: str, symbol: str, machine: Any) -> str:
    """The module with every helper inlined into the kernel, and its structs taken apart."""
    if text.count("\ndefine ") > 1:
        text = _always_inline(text, symbol)
    module = parse(text)
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
    """Raises NotCompilableError if the kernel calls what has no lowering."""
    for external in _called(text):
        family = classify(external.name)
        if family is None:
            raise NotCompilableError(f"calls {external.name}, which is not known here")
        if family.kind == "unsupported":
            raise NotCompilableError(f"calls {external.name}: {family.note}")


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

    Raises NotCompilableError with the reason.
    """
    host = this_host()
    original = str(llvm.parse_bitcode(bitcode, context=llvm.create_context()))
    return lower_assembly(original, name, options, host.machine())


def lower_assembly(
    original: str, name: str, options: Options, machine: Any = None
) -> tuple[str, Kernel, Instrumented]:
    """The same from assembly in the AIR style."""
    machine = machine or this_host().machine()
    try:
        kernel = read_kernel(original, name)
    except (ValueError, KeyError) as error:
        raise NotCompilableError(f"the kernel's metadata cannot be read: {error}") from error
    _refuse_unknown(original)
    text = _inlined(_retarget(original, this_host()), kernel.symbol, machine)
    made = instrument(text, kernel, check=options.check)
    try:
        driver = write_driver(kernel, made.text, cooperative=made.cooperative)
    except UnknownRoleError as error:
        raise NotCompilableError(str(error)) from error
    definitions, needs = _definitions(made.text, options.direction)
    body = _without_declarations(made.text)
    body = re.sub(
        rf'^define (?:weak_odr )?(void @"?{re.escape(kernel.symbol)}"?\(.*\)).*\{{$',
        r"define internal \1 alwaysinline nounwind {", body, flags=re.M,
    )  # fmt: skip
    parts = definitions | needs | set(made.helpers)
    parts.add("declare ptr @opscan_violation(i32, i64, i64, i32, ptr) nounwind")
    parts.add(TO_BFLOAT)
    return _assemble(body + "\n" + driver, parts, body), kernel, made
