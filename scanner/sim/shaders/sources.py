"""Kernels that a release compiles from source at run time → AIR-like bitcode, one file a kernel.

The Metal source is compiled as C++ by the zig toolchain with `metal.h` in front, which has only
what simple elementwise kernels need; anything else is refused with the compiler's reason.
Parameters get their address spaces and their `!air.kernel` description from the source's own
attributes.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from . import ir

__all__ = ["Sources", "UncompilableError", "adapt"]

_HEADER = Path(__file__).with_name("metal.h")
_FLAGS = (
    "-x", "c++", "-std=c++17", "-S", "-emit-llvm", "-O1", "-ffreestanding", "-fno-exceptions",
    "-fno-rtti", "-ffp-contract=off", "-fno-sanitize=all", "-g0", "-w",
)  # fmt: skip
_SPACES = {"device": 1, "constant": 2}
_NODE = 90000


class UncompilableError(Exception):
    """Why a source cannot be run here."""


@dataclass(frozen=True)
class _Parameter:
    """One parameter of a kernel, as its source declares it."""

    name: str
    role: str
    """`buffer`, `thread_position_in_grid`, …"""
    index: int
    space: int


class Sources:
    """Compiles sources and keeps the bitcode in a folder that processes may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._refused: dict[str, str] = {}

    def bitcode(self, source: str, kernel: str) -> Path:
        """A file with the bitcode of one kernel; a third of a second the first time.

        Raises UncompilableError.
        """
        digest = hashlib.sha256(f"{_version()}\0{kernel}\0{source}".encode()).hexdigest()[:32]
        path = self._folder / f"{digest}.bc"
        if path.exists():
            return path
        if digest in self._refused:
            raise UncompilableError(self._refused[digest])
        try:
            code = _assembled(adapt(_compiled(source), source, kernel))
        except UncompilableError as error:
            self._refused[digest] = str(error)
            raise
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_bytes(code)
        partial.replace(path)
        return path


@cache
def _version() -> str:
    own, header = Path(__file__).read_bytes(), _HEADER.read_bytes()
    return hashlib.sha256(b"%b\0%b\0%r" % (own, header, llvm.llvm_version_info)).hexdigest()


def _compiled(source: str) -> str:
    """LLVM assembly of a source, for this host."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "source.cpp", Path(folder) / "source.ll"
        given.write_text(f'#include "{_HEADER}"\n#line 1 "source"\n{source}')
        command = [sys.executable, "-m", "ziglang", "c++", *_FLAGS, "-o", str(made), str(given)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            raise UncompilableError(
                "its source is compiled at run time and needs more of Metal than is known here: "
                + (lines or ["no message"])[0][:160]
            )
        return made.read_text()


def _assembled(text: str) -> bytes:
    try:
        module = llvm.parse_assembly(text, context=llvm.create_context())
    except RuntimeError as error:
        raise UncompilableError(f"LLVM refuses the compiled source: {error}") from error
    return bytes(module.as_bitcode())


def adapt(assembly: str, source: str, kernel: str) -> str:
    """The module with one kernel in the AIR style: named values, address spaces, metadata.

    Raises UncompilableError where the source does not spell the kernel's parameters out.
    """
    parameters = _parameters(source, kernel)
    try:
        types = [ir.argument_type(p) for p in ir.parameters(assembly, kernel)]
    except ValueError as error:
        raise UncompilableError(str(error)) from error
    if len(types) != len(parameters):
        raise UncompilableError("its parameters are not passed one by one")
    start = assembly.index(f"@{kernel}(")
    start = assembly.rindex("\ndefine ", 0, start) + 1
    end = assembly.index("\n}", start)
    body = assembly[assembly.index("{\n", start) + 2 : end]
    function = _function(kernel, types, parameters, body)
    return assembly[:start] + function + assembly[end + 2 :] + _metadata(kernel, parameters)


def _parameters(source: str, kernel: str) -> list[_Parameter]:
    match = re.search(rf"\bkernel\s+void\s+{re.escape(kernel)}\s*\(", source)
    if match is None:
        raise UncompilableError("its source does not spell the kernel out")
    depth, end = 1, match.end()
    while depth and end < len(source):
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        end += 1
    return [_parameter(text) for text in ir.split(source[match.end() : end - 1])]


def _parameter(text: str) -> _Parameter:
    match = re.fullmatch(r"(.*?)(\w+)\s*\[\[\s*(\w+)(?:\((\d+)\))?\s*\]\]", text.strip(), re.S)
    if match is None:
        raise UncompilableError(f"its parameter {text.strip()!r} has no attribute")
    space = next((n for word, n in _SPACES.items() if re.search(rf"\b{word}\b", match[1])), 0)
    return _Parameter(match[2], match[3], int(match[4] or -1), space)


def _function(kernel: str, types: list[str], parameters: list[_Parameter], body: str) -> str:
    """The kernel with every number a name, so that its pointers can be replaced by casts."""
    given, casts = [], ""
    for i, (kind, parameter) in enumerate(zip(types, parameters, strict=True)):
        if parameter.space:
            given.append(f"ptr addrspace({parameter.space}) %given{i}")
            casts += f"  %v{i} = addrspacecast ptr addrspace({parameter.space}) %given{i} to ptr\n"
        else:
            given.append(f"{kind} %v{i}")
    named = re.sub(r"%(\d+)\b", r"%v\1", re.sub(r"^(\d+):", r"v\1:", body, flags=re.M))
    return f"define void @{kernel}({', '.join(given)}) {{\nv{len(types)}:\n{casts}{named}\n}}\n"


def _metadata(kernel: str, parameters: list[_Parameter]) -> str:
    """`!air.kernel` and `!air.compile_options`: function, outputs, arguments."""
    numbers = [_NODE + 10 + place for place in range(len(parameters))]
    listed = ", ".join(f"!{number}" for number in numbers)
    nodes = "".join(
        f"!{number} = !{{{_described(place, parameter)}}}\n"
        for place, (number, parameter) in enumerate(zip(numbers, parameters, strict=True))
    )
    return (
        f"\n!air.kernel = !{{!{_NODE}}}\n!air.compile_options = !{{!{_NODE + 3}, !{_NODE + 4}}}\n"
        f"!{_NODE} = !{{ptr @{kernel}, !{_NODE + 1}, !{_NODE + 2}}}\n!{_NODE + 1} = !{{}}\n"
        f'!{_NODE + 2} = !{{{listed}}}\n!{_NODE + 3} = !{{!"air.compile.denorms_disable"}}\n'
        f'!{_NODE + 4} = !{{!"air.compile.fast_math_disable"}}\n{nodes}'
    )


def _described(place: int, parameter: _Parameter) -> str:
    text = f'i32 {place}, !"air.{parameter.role}"'
    if parameter.role == "buffer":
        text += (
            f', !"air.location_index", i32 {parameter.index}, i32 1, !"air.read_write", '
            f'!"air.address_space", i32 {parameter.space}'
        )
    return f'{text}, !"air.arg_name", !"{parameter.name}"'
