"""Threads of a group together. Expected values follow from the lane numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sim.shaders.air import (
    GRID,
    Array,
    Parameter,
    buffer,
    compiled,
    launch_here,
    module,
    position,
    run,
)

LANE = position("thread_index_in_simdgroup", "lane")
LOCAL = position("thread_position_in_threadgroup", "t")


def simd(external: str, kind: str, arguments: str, signature: str) -> str:
    """out[i] = external(in[i] …), for every thread."""
    body = (
        f"  %j = zext i32 %i to i64\n  %p = getelementptr {kind}, ptr addrspace(1) %in, i64 %j\n"
        f"  %x = load {kind}, ptr addrspace(1) %p\n"
        f"  %r = tail call {kind} @{external}({arguments}) #1\n"
        f"  %q = getelementptr {kind}, ptr addrspace(1) %out, i64 %j\n"
        f"  store {kind} %r, ptr addrspace(1) %q\n  ret void"
    )
    return module("kernel", [buffer("out", 0), buffer("in", 1), GRID], body,
                  declares=[f"{kind} @{external}({signature})"])  # fmt: skip


def exchange(
    runtime: Path, assembly: str, given: Array, group: int = 64, threads: int | None = None
) -> Array:
    out = np.zeros_like(given)
    done = run(assembly, runtime, {0: out, 1: given}, threads or len(given), group)
    assert done.outcome == "ran"
    assert done.violations == []
    return out


def test_sum_of_a_full_and_a_partial_simdgroup(runtime: Path) -> None:
    """40 threads: 0+…+31 = 496 for the first 32, 32+…+39 = 284 for the other 8."""
    assembly = simd("air.simd_sum.f32", "float", "float %x", "float")
    got = exchange(runtime, assembly, np.arange(40, dtype=np.float32))
    assert got[:32].tolist() == [496] * 32
    assert got[32:].tolist() == [284] * 8


def test_a_sum_after_a_branch_on_the_lane_stays_one_meeting(runtime: Path) -> None:
    """Only lane 0 uses the sum: a copy of the call in its branch would leave it alone."""
    body = (
        "  %z = icmp eq i32 %lane, 0\n  br i1 %z, label %first, label %join\nfirst:\n"
        "  %a = load float, ptr addrspace(1) %in\n  %b = fadd float %a, 1.0\n  br label %join\n"
        "join:\n  %v = phi float [ 2.0, %0 ], [ %b, %first ]\n"
        "  %r = tail call float @air.simd_sum.f32(float %v) #1\n"
        "  br i1 %z, label %store, label %end\nstore:\n"
        "  store float %r, ptr addrspace(1) %out\n  br label %end\nend:\n  ret void"
    )
    parameters = [buffer("out", 0), buffer("in", 1), LANE]
    declares = ["float @air.simd_sum.f32(float)"]
    assembly = module("kernel", parameters, body, declares=declares)
    got = exchange(runtime, assembly, np.array([4], np.float32), 32, 32)
    assert got.tolist() == [4 + 1 + 31 * 2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("air.simd_max.s.i32", 3), ("air.simd_min.s.i32", -28), ("air.simd_max.u.i32", -1),
     ("air.simd_min.u.i32", 0), ("air.simd_sum.s.i32", sum(range(-28, 4))),
     ("air.simd_or.s.i32", -1), ("air.simd_and.s.i32", 0), ("air.simd_xor.s.i32", 0)],
)  # fmt: skip
def test_integer_reductions(runtime: Path, name: str, expected: int) -> None:
    """The lanes hold -28 … 3."""
    assembly = simd(name, "i32", "i32 %x", "i32")
    got = exchange(runtime, assembly, np.arange(-28, 4, dtype=np.int32))
    assert got.tolist() == [expected] * 32


@pytest.mark.parametrize(
    ("name", "expected"),
    [("prefix_exclusive_sum", lambda n: n * (n - 1) // 2),
     ("prefix_inclusive_sum", lambda n: n * (n + 1) // 2)],
)  # fmt: skip
def test_prefix_sums(runtime: Path, name: str, expected: object) -> None:
    assembly = simd(f"air.simd_{name}.u.i32", "i32", "i32 %x", "i32")
    got = exchange(runtime, assembly, np.arange(32, dtype=np.int32))
    assert callable(expected)
    assert got.tolist() == [expected(n) for n in range(32)]


@pytest.mark.parametrize(
    ("name", "by", "source"),
    [("shuffle", 5, lambda n: 5), ("shuffle_down", 3, lambda n: n + 3 if n < 29 else n),
     ("shuffle_up", 3, lambda n: n - 3 if n >= 3 else n), ("shuffle_xor", 1, lambda n: n ^ 1),
     ("shuffle_rotate_down", 4, lambda n: (n + 4) % 32), ("broadcast", 7, lambda n: 7)],
)  # fmt: skip
def test_shuffles(runtime: Path, name: str, by: int, source: object) -> None:
    assembly = simd(f"air.simd_{name}.f32", "float", f"float %x, i16 {by}", "float, i16")
    got = exchange(runtime, assembly, np.arange(32, dtype=np.float32))
    assert callable(source)
    assert got.tolist() == [source(n) for n in range(32)]


def test_a_lane_that_takes_no_part_reads_as_zero(runtime: Path) -> None:
    assembly = simd("air.simd_shuffle_down.f32", "float", "float %x, i16 2", "float, i16")
    got = exchange(runtime, assembly, np.arange(1, 9, dtype=np.float32))
    assert got.tolist() == [3, 4, 5, 6, 7, 8, 0, 0]


def test_shuffle_and_fill_takes_the_fill_from_the_other_end(runtime: Path) -> None:
    """Blocks of 8 lanes, shifted up by 2; filling data are the negative lane numbers."""
    body = (
        "  %f = uitofp i32 %i to float\n  %n = fneg float %f\n"
        "  %r = call float @air.simd_shuffle_and_fill_up.f32(float %f, float %n, i16 2, i16 8)\n"
        "  %j = zext i32 %i to i64\n  %q = getelementptr float, ptr addrspace(1) %out, i64 %j\n"
        "  store float %r, ptr addrspace(1) %q\n  ret void"
    )
    assembly = module("kernel", [buffer("out", 0), GRID], body, declares=[
        "float @air.simd_shuffle_and_fill_up.f32(float, float, i16, i16)"])  # fmt: skip
    out = np.zeros(32, np.float32)
    run(assembly, runtime, {0: out}, 32)
    assert out[:8].tolist() == [-6, -7, 0, 1, 2, 3, 4, 5]
    assert out[8:16].tolist() == [-14, -15, 8, 9, 10, 11, 12, 13]


def test_diverged_lanes_meet_only_their_own(runtime: Path) -> None:
    """Lanes below 10 sum one way, the others the other way, then all sum again."""
    body = (
        "  %j = zext i32 %i to i64\n  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j\n"
        "  %c = icmp ult i32 %i, 10\n  br i1 %c, label %low, label %high\n"
        "low:\n  %a = call i32 @air.simd_sum.u.i32(i32 1)\n  br label %all\n"
        "high:\n  %b = call i32 @air.simd_sum.u.i32(i32 100)\n  br label %all\n"
        "all:\n  %m = phi i32 [ %a, %low ], [ %b, %high ]\n"
        "  %s = call i32 @air.simd_sum.u.i32(i32 1)\n  %w = mul i32 %s, 10000\n"
        "  %r = add i32 %m, %w\n  store i32 %r, ptr addrspace(1) %q\n  ret void"
    )
    assembly = module("kernel", [buffer("out", 0), GRID], body,
                      declares=["i32 @air.simd_sum.u.i32(i32)"])  # fmt: skip
    out = np.zeros(32, np.int32)
    assert run(assembly, runtime, {0: out}, 32).outcome == "ran"
    assert out.tolist() == [320010] * 10 + [322200] * 22


def test_lanes_meet_at_one_call_whatever_they_did_before(runtime: Path) -> None:
    """LLVM must not copy the call into the branch that decided it: a dot product's last step."""
    body = (
        "  %j = zext i32 %i to i64\n  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j\n"
        "  %c = icmp eq i32 %i, 0\n  br i1 %c, label %first, label %all\n"
        "first:\n  %n = load i32, ptr addrspace(1) %q\n  %d = icmp slt i32 %n, 5\n"
        "  br i1 %d, label %rest, label %all\n"
        "rest:\n  %k = phi i32 [ %n, %first ], [ %l, %rest ]\n  %l = add i32 %k, 1\n"
        "  %e = icmp slt i32 %l, 5\n  br i1 %e, label %rest, label %all\n"
        "all:\n  %m = phi i32 [ 1, %0 ], [ 1, %first ], [ %l, %rest ]\n"
        "  %s = tail call i32 @air.simd_sum.u.i32(i32 %m) #1\n"
        "  br i1 %c, label %write, label %end\n"
        "write:\n  store i32 %s, ptr addrspace(1) %q\n  br label %end\n"
        "end:\n  ret void"
    )
    assembly = module("kernel", [buffer("out", 0), GRID], body,
                      declares=["i32 @air.simd_sum.u.i32(i32)"])  # fmt: skip
    out = np.full(32, 9, np.int32)
    assert run(assembly, runtime, {0: out}, 32).outcome == "ran"
    assert out.tolist() == [32] + [9] * 31


def test_first_lane_and_votes(runtime: Path) -> None:
    body = (
        "  %j = zext i32 %i to i64\n  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j\n"
        "  %f = call i1 @air.simd_is_first()\n  %c = icmp eq i32 %lane, 3\n"
        "  %y = call i1 @air.simd_any(i1 %c)\n  %z = call i1 @air.simd_all(i1 %c)\n"
        "  %g = zext i1 %f to i32\n  %u = zext i1 %y to i32\n  %v = zext i1 %z to i32\n"
        "  %u2 = mul i32 %u, 10\n  %v2 = mul i32 %v, 100\n  %s = add i32 %g, %u2\n"
        "  %r = add i32 %s, %v2\n  store i32 %r, ptr addrspace(1) %q\n  ret void"
    )
    assembly = module("kernel", [buffer("out", 0), GRID, LANE], body, declares=[
        "i1 @air.simd_is_first()", "i1 @air.simd_any(i1)", "i1 @air.simd_all(i1)"])  # fmt: skip
    out = np.zeros(34, np.int32)
    run(assembly, runtime, {0: out}, 34)
    assert out.tolist() == [11] + [10] * 31 + [1, 0]


REVERSE = (
    "  %t64 = zext i32 %t to i64\n"
    "  %p = getelementptr [1024 x i32], ptr addrspace(3) @local, i64 0, i64 %t64\n"
    "  store i32 %i, ptr addrspace(3) %p\n"
    "  call void @air.wg.barrier(i32 2, i32 1)\n"
    "  %n = sub i32 %size, 1\n  %m = sub i32 %n, %t\n  %m64 = zext i32 %m to i64\n"
    "  %s = getelementptr [1024 x i32], ptr addrspace(3) @local, i64 0, i64 %m64\n"
    "  %r = load i32, ptr addrspace(3) %s\n  %i64 = zext i32 %i to i64\n"
    "  %q = getelementptr i32, ptr addrspace(1) %out, i64 %i64\n"
    "  store i32 %r, ptr addrspace(1) %q\n  ret void"
)
REVERSE_PARAMETERS: list[Parameter] = [
    buffer("out", 0), GRID, LOCAL, position("threads_per_threadgroup", "size"),
]  # fmt: skip


@pytest.mark.parametrize("group", [1, 7, 32, 100, 1024])
def test_barrier_and_threadgroup_memory_at_any_size(runtime: Path, group: int) -> None:
    """Every group writes its threads in reverse; the last group may be partial."""
    assembly = module(
        "kernel", REVERSE_PARAMETERS, REVERSE, declares=["void @air.wg.barrier(i32, i32)"],
        top="@local = internal unnamed_addr addrspace(3) global [1024 x i32] undef, align 4",
    )  # fmt: skip
    out = np.zeros(250, np.int32)
    assert run(assembly, runtime, {0: out}, 250, group).outcome == "ran"
    expected = [
        i for start in range(0, 250, group) for i in reversed(range(start, min(250, start + group)))
    ]
    assert out.tolist() == expected


def test_threads_that_left_do_not_hold_up_a_barrier(runtime: Path) -> None:
    body = (
        "  %c = icmp ult i32 %t, 5\n  br i1 %c, label %on, label %off\n"
        "on:\n  call void @air.wg.barrier(i32 2, i32 1)\n  %t64 = zext i32 %t to i64\n"
        "  %q = getelementptr i32, ptr addrspace(1) %out, i64 %t64\n"
        "  store i32 1, ptr addrspace(1) %q\n  ret void\noff:\n  ret void"
    )
    assembly = module("kernel", [buffer("out", 0), LOCAL], body,
                      declares=["void @air.wg.barrier(i32, i32)"])  # fmt: skip
    out = np.zeros(8, np.int32)
    assert run(assembly, runtime, {0: out}, 8, 8).outcome == "ran"
    assert out.tolist() == [1] * 5 + [0] * 3


def test_positions_in_three_dimensions(runtime: Path) -> None:
    """A barrier makes the kernel cooperative; without it the loops must agree."""
    names = ["thread_position_in_grid", "threadgroup_position_in_grid",
             "thread_position_in_threadgroup", "threads_per_threadgroup"]  # fmt: skip
    kind = "<3 x i32> noundef"
    parameters = [buffer("out", 0)] + [position(n, f"v{i}", kind) for i, n in enumerate(names)]
    parameters.append(position("threads_per_grid", "g", kind))
    parameters.append(position("thread_index_in_threadgroup", "index"))
    body = "".join(f"  %g{d} = extractelement <3 x i32> %g, i32 {d}\n" for d in range(3))
    body += "".join(f"  %p{d} = extractelement <3 x i32> %v0, i32 {d}\n" for d in range(3))
    body += (
        "  %a = mul i32 %p2, %g1\n  %b = add i32 %a, %p1\n  %c = mul i32 %b, %g0\n"
        "  %n = add i32 %c, %p0\n  %m = mul i32 %n, 13\n"
    )
    at = 0
    for i in range(4):
        for d in range(3):
            body += f"  %e{at} = extractelement <3 x i32> %v{i}, i32 {d}\n"
            body += f"  %k{at} = add i32 %m, {at}\n  %l{at} = zext i32 %k{at} to i64\n"
            body += f"  %q{at} = getelementptr i32, ptr addrspace(1) %out, i64 %l{at}\n"
            body += f"  store i32 %e{at}, ptr addrspace(1) %q{at}\n"
            at += 1
    body += (
        "  %k12 = add i32 %m, 12\n  %l12 = zext i32 %k12 to i64\n"
        "  %q12 = getelementptr i32, ptr addrspace(1) %out, i64 %l12\n"
        "  store i32 %index, ptr addrspace(1) %q12\n"
    )
    barrier = "  call void @air.wg.barrier(i32 2, i32 1)\n"
    grid, group = (5, 3, 4), (2, 2, 3)
    expected = []
    for z in range(4):
        for y in range(3):
            for x in range(5):
                place = (x, y, z)
                number = [p // s for p, s in zip(place, group, strict=True)]
                inside = [p % s for p, s in zip(place, group, strict=True)]
                size = [min(s, g - n * s) for g, s, n in zip(grid, group, number, strict=True)]
                linear = inside[0] + size[0] * (inside[1] + size[1] * inside[2])
                expected.append([*place, *number, *inside, *size, linear])
    for middle in ("", barrier):
        assembly = module("kernel", parameters, f"{middle}{body}  ret void",
                          declares=["void @air.wg.barrier(i32, i32)"])  # fmt: skip
        out = np.full((60, 13), -1, np.int32)
        code = compiled(assembly)
        assert code.cooperative == bool(middle)
        done = launch_here(code, runtime, {0: out}, grid, group)
        assert (done.outcome, done.violations) == ("ran", [])
        assert out.tolist() == expected


def test_threadgroup_memory_starts_at_zero_for_every_group(runtime: Path) -> None:
    """Each group reads the array before it writes it."""
    body = (
        "  %p = getelementptr [4 x i32], ptr addrspace(3) @local, i64 0, i64 0\n"
        "  %v = load i32, ptr addrspace(3) %p\n  call void @air.wg.barrier(i32 2, i32 1)\n"
        "  store i32 9, ptr addrspace(3) %p\n  %j = zext i32 %i to i64\n"
        "  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j\n"
        "  store i32 %v, ptr addrspace(1) %q\n  ret void"
    )
    assembly = module(
        "kernel", [buffer("out", 0), GRID], body, declares=["void @air.wg.barrier(i32, i32)"],
        top="@local = internal addrspace(3) global [4 x i32] undef, align 4",
    )  # fmt: skip
    out = np.ones(6, np.int32)
    assert run(assembly, runtime, {0: out}, 6, 2).outcome == "ran"
    assert out.tolist() == [0] * 6
