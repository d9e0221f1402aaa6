"""Accesses outside the bindings are noted and do no harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scanner.sim.shaders.compiler import Options
from tests.sim.shaders.air import GRID, buffer, compiled, elementwise, launch_here, module, run

COPY = elementwise("air.fabs.f32", "float", ["float"])


def test_reads_and_writes_past_the_end(runtime: Path) -> None:
    """12 threads over 10 elements: two of each are outside, the first at byte 40."""
    memory = np.full(16, -7, np.float32)
    given, out = -np.ones(10, np.float32), memory[:10]
    done = run(COPY, runtime, {0: out, 1: given}, 12)
    assert done.outcome == "ran"
    sites = compiled(COPY).sites
    seen = [(sites[s].kind, sites[s].name, count, at) for s, count, at in done.violations]
    assert seen == [("read", "in0", 2, 40), ("write", "out", 2, 40)]
    assert memory.tolist() == [1.0] * 10 + [-7.0] * 6


def test_inside_the_allocation_an_access_takes_place_and_is_noted(runtime: Path) -> None:
    """13 threads over 12 elements of which 10 were asked for: two in the slack, one outside."""
    memory = np.full(16, -7, np.float32)
    given, out = -np.arange(1, 13, dtype=np.float32), memory[:12]
    code = compiled(COPY)
    done = launch_here(code, runtime, {0: out, 1: given}, (13, 1, 1), (64, 1, 1), slack=8)
    kinds = [code.sites[site].kind for site, _, _ in done.notes]
    assert kinds == ["read", "write"]
    assert [seen[1:] for seen in done.notes] == [(2, 40), (2, 40)]
    assert [seen[1:] for seen in done.violations] == [(1, 48), (1, 48)]
    assert memory.tolist() == [*range(1, 13), -7, -7, -7, -7]


def test_half_in_the_slack_and_half_outside_is_outside(runtime: Path) -> None:
    out = np.zeros(12, np.uint8)[:10]
    body = (
        "  %q = getelementptr float, ptr addrspace(1) %out, i64 2\n"
        "  store float 1.0, ptr addrspace(1) %q, align 1\n  ret void"
    )
    code = compiled(module("kernel", [buffer("out", 0), GRID], body))
    done = launch_here(code, runtime, {0: out}, (1, 1, 1), (1, 1, 1), slack=6)
    assert (done.notes, [seen[1:] for seen in done.violations]) == ([], [(1, 8)])
    assert not out.any()


def test_inside_nothing_is_noted(runtime: Path) -> None:
    out = np.zeros(10, np.float32)
    assert run(COPY, runtime, {0: out, 1: -np.ones(10, np.float32)}, 10).violations == []


def test_an_access_half_inside_is_outside(runtime: Path) -> None:
    out = np.zeros(9, np.uint8)[:7].view(np.uint8)
    body = (
        "  %q = getelementptr float, ptr addrspace(1) %out, i64 1\n"
        "  store float 1.0, ptr addrspace(1) %q, align 1\n  ret void"
    )
    done = run(module("kernel", [buffer("out", 0), GRID], body), runtime, {0: out}, 1)
    assert [v[1:] for v in done.violations] == [(1, 4)]
    assert not out.any()


def test_before_the_start(runtime: Path) -> None:
    memory = np.zeros(4, np.float32)
    body = (
        "  %q = getelementptr float, ptr addrspace(1) %out, i64 -1\n"
        "  store float 1.0, ptr addrspace(1) %q\n  ret void"
    )
    done = run(module("kernel", [buffer("out", 0), GRID], body), runtime, {0: memory[2:]}, 1)
    assert [v[1:] for v in done.violations] == [(1, -4)]
    assert not memory.any()


def test_reads_outside_give_zero(runtime: Path) -> None:
    out = np.full(4, 9, np.float32)
    run(COPY, runtime, {0: out, 1: np.ones(2, np.float32)}, 4)
    assert out.tolist() == [1, 1, 0, 0]


def test_what_is_not_bound_is_outside(runtime: Path) -> None:
    out = np.full(2, 9, np.float32)
    done = run(COPY, runtime, {0: out}, 2)
    assert [v[1:] for v in done.violations] == [(2, 0)]
    assert out.tolist() == [0, 0]


INDEXED = (
    "  %a = alloca [4 x i32], align 4\n"
    "  %z = load i32, ptr addrspace(1) %out\n  %k = zext i32 %z to i64\n"
    "  %p = getelementptr [4 x i32], ptr %a, i64 0, i64 %k\n  store volatile i32 5, ptr %p\n"
    "  %r = load i32, ptr %p\n  store i32 %r, ptr addrspace(1) %out\n  ret void"
)


@pytest.mark.parametrize("index", [3, 4, 16])
def test_a_local_array_has_bounds(runtime: Path, index: int) -> None:
    """Index 4 of four elements is the first outside, at byte 16; the load repeats the store."""
    out = np.array([index], np.int32)
    done = run(module("kernel", [buffer("out", 0), GRID], INDEXED), runtime, {0: out}, 1)
    assert done.outcome == "ran"
    outside = [v[1:] for v in done.violations]
    assert outside == ([] if index < 4 else [(1, 4 * index)])


def test_a_threadgroup_array_has_bounds(runtime: Path) -> None:
    body = (
        "  %j = zext i32 %i to i64\n"
        "  %p = getelementptr [8 x i32], ptr addrspace(3) @local, i64 0, i64 %j\n"
        "  store i32 %i, ptr addrspace(3) %p\n  ret void"
    )
    top = "@local = internal addrspace(3) global [8 x i32] undef, align 4"
    assembly = module("kernel", [buffer("out", 0), GRID], body, top=top)
    done = run(assembly, runtime, {0: np.zeros(1, np.int32)}, 10)
    assert [v[1:] for v in done.violations] == [(2, 32)]
    site = compiled(assembly).sites[done.violations[0][0]]
    assert (site.kind, site.name) == ("write", "@local")


def test_bound_threadgroup_memory_has_bounds(runtime: Path) -> None:
    body = (
        "  %p = getelementptr i32, ptr addrspace(3) %local, i64 1024\n"
        "  store i32 %i, ptr addrspace(3) %p\n  ret void"
    )
    done = run(module("kernel", [buffer("local", 0, space=3), GRID], body), runtime, {}, 1)
    assert [v[1:] for v in done.violations] == [(1, 4096)]


def test_a_pointer_that_moves_in_a_loop_keeps_its_bounds(runtime: Path) -> None:
    """Six steps of one element over an array of four."""
    body = (
        "  br label %loop\nloop:\n"
        "  %p = phi ptr addrspace(1) [ %out, %0 ], [ %n, %loop ]\n"
        "  %k = phi i32 [ 0, %0 ], [ %k1, %loop ]\n"
        "  store i32 7, ptr addrspace(1) %p\n"
        "  %n = getelementptr i32, ptr addrspace(1) %p, i64 1\n  %k1 = add i32 %k, 1\n"
        "  %c = icmp ult i32 %k1, 6\n  br i1 %c, label %loop, label %end\nend:\n  ret void"
    )
    memory = np.zeros(8, np.int32)
    done = run(module("kernel", [buffer("out", 0), GRID], body), runtime, {0: memory[:4]}, 1)
    assert [v[1:] for v in done.violations] == [(2, 16)]
    assert memory.tolist() == [7] * 4 + [0] * 4


def test_a_pointer_read_from_memory_must_point_into_known_memory(runtime: Path) -> None:
    body = (
        "  %p = load ptr addrspace(1), ptr addrspace(1) %out\n"
        "  %v = load i32, ptr addrspace(1) %p\n"
        "  %q = getelementptr i32, ptr addrspace(1) %out, i64 2\n"
        "  store i32 %v, ptr addrspace(1) %q\n  ret void"
    )
    out = np.array([64, 3], np.uint64)
    done = run(module("kernel", [buffer("out", 0), GRID], body), runtime, {0: out}, 1)
    assert done.outcome == "ran"
    assert len(done.violations) == 1
    assert out[1] == 0


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("operation", "a", "b", "expected", "noted"),
    [("sdiv", -7, 2, -3, 0), ("sdiv", 7, 0, -1, 1), ("srem", 7, 0, 7, 1), ("udiv", 7, 0, -1, 1),
     ("urem", 9, 4, 1, 0), ("sdiv", -(2**31), -1, -(2**31), 0), ("srem", -(2**31), -1, 0, 0)],
)  # fmt: skip
def test_integer_division_does_not_trap(
    runtime: Path, check: bool, operation: str, a: int, b: int, expected: int, noted: int
) -> None:
    body = (
        "  %q = getelementptr i32, ptr addrspace(1) %out, i64 1\n"
        "  %a = load i32, ptr addrspace(1) %out\n  %b = load i32, ptr addrspace(1) %q\n"
        f"  %r = {operation} i32 %a, %b\n  store i32 %r, ptr addrspace(1) %out\n  ret void"
    )
    out = np.array([a, b], np.int32)
    assembly = module("kernel", [buffer("out", 0), GRID], body)
    options = Options(check=check, optimise=not check)
    done = run(assembly, runtime, {0: out}, 1, options=options)
    assert done.outcome == "ran"
    assert out[0] == expected
    assert len(done.violations) == noted


def test_vectors_divide_by_element(runtime: Path) -> None:
    body = (
        "  %a = load <2 x i32>, ptr addrspace(1) %out\n"
        "  %r = sdiv <2 x i32> <i32 9, i32 8>, %a\n"
        "  store <2 x i32> %r, ptr addrspace(1) %out\n  ret void"
    )
    out = np.array([2, 0], np.int32)
    done = run(module("kernel", [buffer("out", 0), GRID], body), runtime, {0: out}, 1)
    assert out.tolist() == [4, -1]
    assert len(done.violations) == 1


ATOMIC = "air.atomic.global.add.s.i32"


def test_atomics_are_counted_and_checked(runtime: Path) -> None:
    body = (
        f"  %r = call i32 @{ATOMIC}(ptr addrspace(1) %out, i32 2, i32 0, i32 2, i1 true)\n"
        "  %q = getelementptr i32, ptr addrspace(1) %out, i64 1\n"
        f"  %s = call i32 @{ATOMIC}(ptr addrspace(1) %q, i32 1, i32 0, i32 2, i1 true)\n  ret void"
    )
    declares = [f"i32 @{ATOMIC}(ptr addrspace(1), i32, i32, i32, i1)"]
    assembly = module("kernel", [buffer("out", 0), GRID], body, declares=declares)
    out = np.array([100], np.int32)
    done = run(assembly, runtime, {0: out}, 10)
    assert out[0] == 120
    assert [v[1:] for v in done.violations] == [(10, 4)]
    assert compiled(assembly).atomic


def test_compare_and_exchange_returns_what_was_there(runtime: Path) -> None:
    name = "air.atomic.global.cmpxchg.weak.i32"
    body = (
        "  %e = alloca i32\n  store i32 5, ptr %e\n"
        f"  %o = call i32 @{name}(ptr addrspace(1) %out, ptr %e, i32 9, i32 0, i32 0, i32 2, "
        "i1 true)\n  %w = load i32, ptr %e\n"
        "  %q = getelementptr i32, ptr addrspace(1) %out, i64 1\n"
        "  store i32 %w, ptr addrspace(1) %q\n"
        "  %s = getelementptr i32, ptr addrspace(1) %out, i64 2\n"
        "  store i32 %o, ptr addrspace(1) %s\n  ret void"
    )
    declares = [f"i32 @{name}(ptr addrspace(1), ptr, i32, i32, i32, i32, i1)"]
    assembly = module("kernel", [buffer("out", 0), GRID], body, declares=declares)
    for start, after in ((5, 9), (6, 6)):
        out = np.array([start, 0, 0], np.int32)
        run(assembly, runtime, {0: out}, 1)
        assert out.tolist() == [after, start, start]


@pytest.mark.parametrize(
    ("name", "kind", "value", "expected"),
    [("max.u.i64", "i64", 7, 7), ("min.u.i64", "i64", 7, 3), ("add.f32", "float", 0.5, None)],
)
def test_other_atomics(
    runtime: Path, name: str, kind: str, value: float, expected: int | None
) -> None:
    full = f"air.atomic.global.{name}"
    result = "void" if kind == "i64" else kind
    assign = "" if kind == "i64" else "%r = "
    body = (
        f"  {assign}call {result} @{full}(ptr addrspace(1) %out, {kind} {value}, i32 0, i32 2, "
        "i1 true)\n  ret void"
    )
    declares = [f"{result} @{full}(ptr addrspace(1), {kind}, i32, i32, i1)"]
    assembly = module("kernel", [buffer("out", 0), GRID], body, declares=declares)
    out = np.array([3], np.uint64) if kind == "i64" else np.array([3], np.float32)
    run(assembly, runtime, {0: out}, 1)
    assert out[0] == (3.5 if expected is None else expected)
