"""Writes kernels in the style of AIR, packs them into a library, and runs them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from scanner.sim.shaders.compiler import Compiled, Options, compile_text, lower_assembly
from scanner.sim.shaders.native import Launcher, Memory, Result
from scanner.sim.trace import Binding, Launch

Array = npt.NDArray[Any]
AIR_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-f32:32:32-f64:64:64-v16:16:16"
    "-v24:32:32-v32:32:32-v48:64:64-v64:64:64-v96:128:128-v128:128:128-v192:256:256-v256:256:256"
    "-v512:512:512-v1024:1024:1024-n8:16:32"
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: its LLVM type and name, and its metadata."""

    kind: str
    name: str
    node: str


def buffer(name: str, index: int, element: str = "float", space: int = 1) -> Parameter:
    """A buffer in device (1), constant (2) or threadgroup (3) memory."""
    access = "air.read" if space == 2 else "air.read_write"
    return Parameter(
        f"ptr addrspace({space}) noundef",
        name,
        f'!"air.buffer", !"air.location_index", i32 {index}, i32 1, !"{access}", '
        f'!"air.address_space", i32 {space}, !"air.arg_type_size", i32 4, '
        f'!"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"{element}", '
        f'!"air.arg_name", !"{name}"',
    )


def position(role: str, name: str = "i", kind: str = "i32 noundef") -> Parameter:
    """A position of the thread, such as `thread_position_in_grid`."""
    return Parameter(
        kind, name, f'!"air.{role}", !"air.arg_type_name", !"uint", !"air.arg_name", !"{name}"'
    )


GRID = position("thread_position_in_grid")


def module(
    name: str,
    parameters: Sequence[Parameter],
    body: str,
    *,
    declares: Sequence[str] = (),
    top: str = "",
    options: Sequence[str] = ("air.compile.denorms_disable", "air.compile.fast_math_disable"),
    max_threads: int = 0,
) -> str:
    """Assembly of a module with one kernel; `body` starts in the entry block."""
    signature = ", ".join(f"{p.kind} %{p.name}" for p in parameters)
    nodes = [f"!{20 + i} = !{{i32 {i}, {p.node}}}" for i, p in enumerate(parameters)]
    listed = ", ".join(f"!{20 + i}" for i in range(len(parameters)))
    settings = ", ".join(f"!{10 + i}" for i in range(len(options)))
    limit = ", !4" if max_threads else ""
    lines = [
        f'source_filename = "{name}"',
        f'target datalayout = "{AIR_LAYOUT}"',
        'target triple = "air64-apple-macosx14.0.0"',
        top,
        f"define void @{name}({signature}) local_unnamed_addr #0 {{",
        body,
        "}",
        *(f"declare {d} local_unnamed_addr #1" for d in declares),
        'attributes #0 = { convergent nounwind "no-builtins" }',
        "attributes #1 = { convergent mustprogress nounwind willreturn memory(none) }",
        f"!air.compile_options = !{{{settings}}}",
        "!air.kernel = !{!1}",
        f"!1 = !{{ptr @{name}, !2, !3{limit}}}",
        "!2 = !{}",
        f"!3 = !{{{listed}}}",
        f'!4 = !{{!"air.max_work_group_size", i32 {max_threads}}}',
        *(f'!{10 + i} = !{{!"{o}"}}' for i, o in enumerate(options)),
        *nodes,
    ]
    return "\n".join(lines) + "\n"


def elementwise(external: str, result: str, arguments: Sequence[str], name: str = "kernel") -> str:
    """A kernel that stores `external(a[i], b[i], …)` in out[i]; buffer 0 is out."""
    parameters = [buffer("out", 0, result)]
    body = "  %j = zext i32 %i to i64\n"
    given = []
    for k, kind in enumerate(arguments):
        parameters.append(buffer(f"in{k}", k + 1, kind, space=2))
        if kind == "i1":
            body += (
                f"  %p{k} = getelementptr i8, ptr addrspace(2) %in{k}, i64 %j\n"
                f"  %w{k} = load i8, ptr addrspace(2) %p{k}, align 1\n"
                f"  %x{k} = icmp ne i8 %w{k}, 0\n"
            )
        else:
            body += (
                f"  %p{k} = getelementptr {kind}, ptr addrspace(2) %in{k}, i64 %j\n"
                f"  %x{k} = load {kind}, ptr addrspace(2) %p{k}, align 1\n"
            )
        given.append(f"{kind} %x{k}")
    body += f"  %r = tail call {result} @{external}({', '.join(given)}) #1\n"
    stored, value = result, "%r"
    if result == "i1":
        body += "  %b = zext i1 %r to i8\n"
        stored, value = "i8", "%b"
    body += (
        f"  %q = getelementptr {stored}, ptr addrspace(1) %out, i64 %j\n"
        f"  store {stored} {value}, ptr addrspace(1) %q, align 1\n  ret void"
    )
    declared = f"{result} @{external}({', '.join(arguments)})"
    return module(name, [*parameters, GRID], body, declares=[declared])


def compiled(assembly: str, options: Options | None = None, name: str = "kernel") -> Compiled:
    """Compiles a module's kernel."""
    options = options or Options()
    return compile_text(*lower_assembly(assembly, name, options), optimise=options.optimise)


def launch_here(
    code: Compiled,
    runtime: Path,
    arrays: Mapping[int, Array],
    grid: tuple[int, int, int],
    group: tuple[int, int, int],
    *,
    threadgroup: int = 4096,
    slack: int = 0,
) -> Result:
    """Runs all threadgroups of a kernel in this process; `arrays` are bound by buffer index.

    The last `slack` bytes of each are those that an allocator added.
    """
    room = ctypes.create_string_buffer(threadgroup)
    bound = [
        Memory(ctypes.addressof(room), threadgroup)
        if space == 3
        else Memory(arrays[i].ctypes.data, arrays[i].nbytes, slack=slack)
        if i in arrays
        else Memory(0, 0)
        for i, space in zip(code.buffers, code.spaces, strict=True)
    ]
    groups = 1
    for size, width in zip(grid, group, strict=True):
        groups *= -(-size // width)
    return Launcher(code, runtime).launch(bound, grid, group, part=(0, groups))


def run(
    assembly: str,
    runtime: Path,
    arrays: Mapping[int, Array],
    threads: int,
    group: int = 64,
    options: Options | None = None,
) -> Result:
    """Compiles and runs a one-dimensional launch."""
    code = compiled(assembly, options)
    return launch_here(code, runtime, arrays, (threads, 1, 1), (group, 1, 1))


def apply(
    runtime: Path,
    external: str,
    types: tuple[str, ...],
    inputs: Sequence[Array],
    out: npt.DTypeLike,
    options: Options | None = None,
) -> Array:
    """`external` of every element; `types` are the LLVM types of the result and arguments."""
    assembly = elementwise(external, types[0], types[1:])
    shape = inputs[0].shape
    result: Array = np.zeros(shape, out)
    arrays = {0: result} | {k + 1: np.ascontiguousarray(a) for k, a in enumerate(inputs)}
    done = run(assembly, runtime, arrays, shape[0], options=options)
    assert done.outcome == "ran"
    assert done.violations == []
    return result


def write_library(path: Path, modules: Mapping[str, str]) -> Path:
    """Packs kernels into a Metal library file, laid out as in the published ones."""
    blobs, entries, offset = b"", b"", 0
    for name, assembly in modules.items():
        code = llvm.parse_assembly(assembly, context=llvm.create_context()).as_bitcode()
        assert code[:4] == struct.pack("<I", 0x0B17C0DE)  # LLVM wraps what is for Apple's systems
        blob = code
        tags = b"".join(
            tag + struct.pack("<H", len(data)) + data
            for tag, data in (
                (b"NAME", name.encode() + b"\0"),
                (b"TYPE", b"\x02"),
                (b"MDSZ", struct.pack("<Q", len(blob))),
                (b"OFFT", struct.pack("<3Q", 0, 0, offset)),
            )
        )
        entry = tags + b"ENDT"
        entries += struct.pack("<I", len(entry) + 4) + entry
        blobs += blob
        offset += len(blob)
    functions = struct.pack("<I", len(modules)) + entries
    start = 88
    bitcode = start + len(functions)
    head = b"MTLB\x01\x80\x02\x00\x07\x00\x00\x81\x0e\x00\x00\x00" + struct.pack(
        "<9Q", bitcode + len(blobs), start, len(functions), bitcode, 0, bitcode, 0, bitcode,
        len(blobs),
    )  # fmt: skip
    path.write_bytes(head + functions + blobs)
    return path


def bind(index: int, array: Array) -> Binding:
    """A buffer binding of an array of this process."""
    return Binding(index=index, kind="buffer", address=array.ctypes.data, length=array.nbytes)


def launch(kernel: str, grid: int, group: int, *bindings: Binding) -> Launch:
    """A one-dimensional launch of threads."""
    return Launch(
        kernel=kernel, grid=(grid, 1, 1), threadgroup=(group, 1, 1), mode="threads",
        bindings=bindings,
    )  # fmt: skip
