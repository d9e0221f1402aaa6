"""Writes the function that calls a kernel for every thread of a launch.

A plain kernel gets loops over the threadgroups and their threads, which LLVM may vectorise. A
cooperative one gets a function for one thread, which the run-time library runs as a fiber.
`opscan_bounds` holds the first and the last address of every buffer argument.
"""

from __future__ import annotations

import re

from . import ir
from .kernel import Argument, Kernel

__all__ = ["ENTRY", "UnknownRoleError", "write_driver"]

ENTRY = "opscan_entry"

# Offsets in the positions of runtime.h.
_POSITIONS = {
    "thread_position_in_grid": 0,
    "threadgroup_position_in_grid": 3,
    "thread_position_in_threadgroup": 6,
    "threads_per_threadgroup": 9,
    "threads_per_grid": 12,
    "threadgroups_per_grid": 15,
    "thread_index_in_threadgroup": 18,
    "thread_index_in_simdgroup": 19,
    "simdgroup_index_in_threadgroup": 20,
    "threads_per_simdgroup": 21,
    "simdgroups_per_threadgroup": 22,
    "dispatch_threads_per_threadgroup": 23,
}
_WIDTHS = {"i16": "trunc", "i32": "", "i64": "zext"}


class UnknownRoleError(Exception):
    """A kernel argument that a launch on the CPU cannot supply."""


def _pointer(argument: Argument, slot: int) -> str:
    i = argument.position
    return (
        f"  %q{i} = getelementptr ptr, ptr %arguments, i64 {slot}\n  %l{i} = load ptr, ptr %q{i}\n"
        f"  %a{i} = addrspacecast ptr %l{i} to ptr addrspace({argument.space})\n"
    )


def _position(argument: Argument, kind: str, values: list[str]) -> tuple[str, str]:
    """(lines, value) of a position argument of type `kind` from i32 values."""
    i = argument.position
    match = re.fullmatch(r"(?:<(\d) x )?(i\d+)>?", kind)
    if match is None or match[2] not in _WIDTHS:
        raise UnknownRoleError(f"argument {argument.name} has type {kind}")
    scalar, lines, last = match[2], "", "poison"
    for d in range(int(match[1] or 1)):
        value = values[d]
        if _WIDTHS[scalar]:
            lines += f"  %c{i}_{d} = {_WIDTHS[scalar]} i32 {value} to {scalar}\n"
            value = f"%c{i}_{d}"
        if not match[1]:
            return lines, value
        lines += f"  %v{i}_{d} = insertelement {kind} {last}, {scalar} {value}, i32 {d}\n"
        last = f"%v{i}_{d}"
    return lines, last


def _call(kernel: Kernel, types: list[str], values: dict[str, list[str]]) -> tuple[str, str]:
    """(lines that depend on the thread, call of the kernel)."""
    lines, given = "", []
    for argument, kind in zip(kernel.arguments, types, strict=True):
        if argument.is_buffer:
            given.append(f"{kind} %a{argument.position}")
            continue
        if argument.role not in values:
            raise UnknownRoleError(f"argument {argument.name} is {argument.role}")
        more, value = _position(argument, kind, values[argument.role])
        lines += more
        given.append(f"{kind} {value}")
    return lines, f'  call void @"{kernel.symbol}"({", ".join(given)})\n'


def _pointers(kernel: Kernel) -> str:
    return "".join(_pointer(a, slot) for slot, a in enumerate(kernel.buffers))


def _fiber(kernel: Kernel, types: list[str]) -> str:
    loads, values = "", {}
    for role, offset in _POSITIONS.items():
        values[role] = [f"%p{offset + d}" for d in range(3)]
    used = {a.role for a in kernel.arguments}
    offsets = sorted({_POSITIONS[r] + d for r in used & set(_POSITIONS) for d in range(3)})
    for offset in offsets:
        loads += (
            f"  %at{offset} = getelementptr i32, ptr %positions, i64 {offset}\n"
            f"  %p{offset} = load i32, ptr %at{offset}\n"
        )
    lines, call = _call(kernel, types, values)
    return (
        f"define void @{ENTRY}(ptr %arguments, ptr %positions) nounwind {{\nentry:\n"
        f"{_pointers(kernel)}{loads}{lines}{call}  ret void\n}}\n"
    )


def _geometry() -> str:
    """Loads %G (grid), %S (threadgroup), %first and %count; %N are threadgroups a dimension."""
    text = ""
    for i, name in enumerate(["Gx", "Gy", "Gz", "Sx", "Sy", "Sz"]):
        text += (
            f"  %at{name} = getelementptr i32, ptr %where, i64 {i}\n"
            f"  %{name} = load i32, ptr %at{name}\n"
        )
    for i, name in enumerate(["first", "count"]):
        text += (
            f"  %at{name} = getelementptr i64, ptr %where, i64 {3 + i}\n"
            f"  %{name} = load i64, ptr %at{name}\n"
        )
    for d in "xyz":
        text += (
            f"  %u{d} = add i32 %G{d}, -1\n  %w{d} = add i32 %u{d}, %S{d}\n"
            f"  %N{d} = udiv i32 %w{d}, %S{d}\n  %M{d} = zext i32 %N{d} to i64\n"
        )
    return text + "  %last = add i64 %first, %count\n"


def _group() -> str:
    """%g (position of the threadgroup), %A (its size) and %o (its first thread)."""
    text = (
        "  %rest = udiv i64 %index, %Mx\n  %g64x = urem i64 %index, %Mx\n"
        "  %g64y = urem i64 %rest, %My\n  %g64z = udiv i64 %rest, %My\n"
    )
    for d in "xyz":
        text += (
            f"  %g{d} = trunc i64 %g64{d} to i32\n  %o{d} = mul i32 %g{d}, %S{d}\n"
            f"  %left{d} = sub i32 %G{d}, %o{d}\n  %short{d} = icmp ult i32 %left{d}, %S{d}\n"
            f"  %A{d} = select i1 %short{d}, i32 %left{d}, i32 %S{d}\n"
        )
    text += "  %Axy = mul i32 %Ax, %Ay\n  %Axyz = mul i32 %Axy, %Az\n"
    return text + "  %round = add i32 %Axyz, 31\n  %simds = lshr i32 %round, 5\n"


def _thread() -> str:
    text = "".join(f"  %p{d} = add i32 %o{d}, %t{d}\n" for d in "xyz")
    return text + (
        "  %zi = mul i32 %tz, %Axy\n  %yi = mul i32 %ty, %Ax\n  %zy = add i32 %zi, %yi\n"
        "  %linear = add i32 %zy, %tx\n  %lane = and i32 %linear, 31\n"
        "  %simd = lshr i32 %linear, 5\n"
    )


def _loops(kernel: Kernel, types: list[str]) -> str:
    values = {
        role: [f"%{letter}{d}" for d in "xyz"]
        for role, letter in (
            ("thread_position_in_grid", "p"),
            ("threadgroup_position_in_grid", "g"),
            ("thread_position_in_threadgroup", "t"),
            ("threads_per_threadgroup", "A"),
            ("threads_per_grid", "G"),
            ("threadgroups_per_grid", "N"),
            ("dispatch_threads_per_threadgroup", "S"),
        )
    }
    values |= {
        "thread_index_in_threadgroup": ["%linear"],
        "thread_index_in_simdgroup": ["%lane"],
        "simdgroup_index_in_threadgroup": ["%simd"],
        "threads_per_simdgroup": ["32"],
        "simdgroups_per_threadgroup": ["%simds"],
    }
    lines, call = _call(kernel, types, values)
    return (
        f"define void @{ENTRY}(ptr %arguments, ptr %where) nounwind {{\nentry:\n"
        f"{_pointers(kernel)}{_geometry()}  %some = icmp ne i64 %count, 0\n"
        "  br i1 %some, label %groups, label %done\n"
        "groups:\n  %index = phi i64 [ %first, %entry ], [ %next, %endz ]\n"
        f"{_group()}  br label %lz\n"
        "lz:\n  %tz = phi i32 [ 0, %groups ], [ %tz1, %endy ]\n  br label %ly\n"
        "ly:\n  %ty = phi i32 [ 0, %lz ], [ %ty1, %endx ]\n  br label %lx\n"
        "lx:\n  %tx = phi i32 [ 0, %ly ], [ %tx1, %lx ]\n"
        f"{_thread()}{lines}{call}"
        "  %tx1 = add nuw i32 %tx, 1\n  %mx = icmp ult i32 %tx1, %Ax\n"
        "  br i1 %mx, label %lx, label %endx\n"
        "endx:\n  %ty1 = add nuw i32 %ty, 1\n  %my = icmp ult i32 %ty1, %Ay\n"
        "  br i1 %my, label %ly, label %endy\n"
        "endy:\n  %tz1 = add nuw i32 %tz, 1\n  %mz = icmp ult i32 %tz1, %Az\n"
        "  br i1 %mz, label %lz, label %endz\n"
        "endz:\n  %next = add nuw i64 %index, 1\n  %more = icmp ult i64 %next, %last\n"
        "  br i1 %more, label %groups, label %done\ndone:\n  ret void\n}\n"
    )


def write_driver(kernel: Kernel, text: str, *, cooperative: bool) -> str:
    """Assembly of the entry, and of the table of bounds.

    Raises UnknownRoleError for an argument that only the GPU can supply.
    """
    types = [ir.argument_type(p) for p in ir.parameters(text, kernel.symbol)]
    table = (
        f"@opscan_bounds = global [{max(2, 2 * len(kernel.buffers))} x i64] zeroinitializer, "
        "align 16\n"
    )
    return table + (_fiber(kernel, types) if cooperative else _loops(kernel, types))
