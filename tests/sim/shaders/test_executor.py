"""Launches through worker processes, with libraries made here."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scanner.sim.shaders.executor import Executor
from scanner.sim.shaders.functions.interface import directions
from scanner.sim.shaders.memory import create_region, merge, release_region
from scanner.sim.shaders.protocol import Description
from scanner.sim.shaders.results import Finding, Findings, NotExecutable, Ran
from scanner.sim.trace import Binding, Launch
from tests.sim.shaders.air import (
    GRID,
    bind,
    buffer,
    elementwise,
    launch,
    module,
    position,
    write_library,
)

FOREVER = "  br label %loop\nloop:\n  store volatile i32 1, ptr addrspace(1) %out\n  br label %loop"
WILD = (
    "  %p = inttoptr i64 4096 to ptr addrspace(1)\n"
    "  store volatile i32 1, ptr addrspace(1) %p\n  ret void"
)
RECURSE = (
    "  %r = call i32 @deep(i32 %i)\n  store i32 %r, ptr addrspace(1) %out\n  ret void\n}\n"
    "define internal i32 @deep(i32 %n) noinline {\n  %a = alloca [512 x i32]\n"
    "  %p = getelementptr [512 x i32], ptr %a, i32 0, i32 %n\n"
    "  store volatile i32 %n, ptr %p\n  %m = call i32 @deep(i32 %n)\n"
    "  %v = load volatile i32, ptr %p\n  %s = add i32 %m, %v\n  ret i32 %s"
)
FOLLOW = (
    "  %p = load ptr addrspace(1), ptr addrspace(1) %out\n"
    "  store i32 77, ptr addrspace(1) %p\n  ret void"
)
GROUP = position("threadgroup_position_in_grid", "g")
COUNT = (
    "  %j = zext i32 %g to i64\n  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j\n"
    "  %v = load i32, ptr addrspace(1) %q\n  %w = add i32 %v, 1\n"
    "  store i32 %w, ptr addrspace(1) %q\n  ret void"
)
BACK = (
    "  %q = getelementptr i32, ptr addrspace(1) %out, i64 -1\n"
    "  store i32 8, ptr addrspace(1) %q\n  ret void"
)
ARRAY = "@local = internal addrspace(3) global [64 x float] undef"
LOCAL = (
    "  %j = zext i32 %i to i64\n"
    "  %p = getelementptr [64 x float], ptr addrspace(3) @local, i64 0, i64 %j\n"
    "  store float 1.0, ptr addrspace(3) %p\n  ret void"
)
UNKNOWN = "  %x = call float @air.unheard_of.f32(float 1.0)\n  ret void"
OUT = [buffer("out", 0), GRID]


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> Path:
    abs_ = elementwise("air.fabs.f32", "float", ["float"], "abs")
    unknown = module("unknown", OUT, UNKNOWN, declares=["float @air.unheard_of.f32(float)"])
    return write_library(
        tmp_path_factory.mktemp("library") / "metal_basic",
        {
            "abs": abs_,
            "forever": module("forever", OUT, FOREVER),
            "wild": module("wild", OUT, WILD),
            "recurse": module("recurse", OUT, RECURSE),
            "follow": module("follow", OUT, FOLLOW),
            "count": module("count", [buffer("out", 0), GROUP], COUNT),
            "unknown": unknown,
            "limited": module("limited", OUT, LOCAL, top=ARRAY, max_threads=256),
            "back": module("back", OUT, BACK),
        },
    )


@pytest.fixture(scope="module")
def executor(section: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    with Executor(section, tmp_path_factory.mktemp("cache"), seconds=0.5) as executor:
        yield executor


def absolute(executor: Executor, size: int = 100) -> None:
    given, out = np.arange(-size, 0, dtype=np.float32), np.zeros(size, np.float32)
    result = executor.run(launch("abs", size, 32, bind(0, out), bind(1, given)))
    assert isinstance(result, Ran)
    np.testing.assert_array_equal(out, -given)


def test_a_launch_runs(executor: Executor) -> None:
    absolute(executor)


def test_two_workers_share_a_large_launch(executor: Executor) -> None:
    absolute(executor, 200_000)


def test_every_threadgroup_runs_once(executor: Executor) -> None:
    out = np.zeros(1001, np.int32)
    result = executor.run(launch("count", 1001 * 64 - 63, 64, bind(0, out)))
    assert isinstance(result, Ran)
    assert out[:1000].tolist() == [64] * 1000
    assert out[1000] == 1


def test_threadgroups_mode_counts_threadgroups(executor: Executor) -> None:
    out = np.zeros(3, np.int32)
    result = executor.run(
        Launch(kernel="count", grid=(3, 1, 1), threadgroup=(8, 1, 1), mode="threadgroups",
               bindings=(bind(0, out),))
    )  # fmt: skip
    assert isinstance(result, Ran)
    assert out.tolist() == [8, 8, 8]


def test_an_empty_grid_does_nothing(executor: Executor) -> None:
    assert executor.run(launch("abs", 0, 32)) == Ran()


@pytest.mark.parametrize("group", [0, 1025])
def test_an_impossible_threadgroup(executor: Executor, group: int) -> None:
    result = executor.run(launch("abs", 10, group))
    assert isinstance(result, NotExecutable)
    assert "threadgroup" in result.reason


def test_a_kernel_describes_itself(executor: Executor) -> None:
    known = executor.describe("limited")
    assert isinstance(known, Description)
    assert (known.max_threads, known.static_memory) == (256, 256)
    assert known.buffers == (0,)


def test_in_place_and_overlapping_bindings_share_their_copy(executor: Executor) -> None:
    memory = np.array([-1, -2, -3, -4], np.float32)
    result = executor.run(launch("abs", 3, 32, bind(0, memory[:3]), bind(1, memory[1:])))
    assert isinstance(result, Ran)
    assert memory.tolist() == [2, 3, 4, -4]


def test_bytes_are_read_where_they_are(executor: Executor) -> None:
    given, out = np.array([-5, -6], np.float32), np.zeros(2, np.float32)
    data = Binding(index=1, kind="bytes", address=given.ctypes.data, length=8)
    assert isinstance(executor.run(launch("abs", 2, 32, bind(0, out), data)), Ran)
    assert out.tolist() == [5, 6]


def test_findings_name_argument_and_offset(executor: Executor) -> None:
    given, out = np.array([-5, -6], np.float32), np.zeros(4, np.float32)
    result = executor.run(launch("abs", 4, 32, bind(0, out), bind(1, given)))
    assert isinstance(result, Findings)
    assert result.findings == (
        Finding(kind="read", argument=1, name="in0", count=2, offset=8, length=8),
    )
    assert out.tolist() == [5, 6, 0, 0]


def test_what_lies_before_in_the_same_buffer_may_be_reached(executor: Executor) -> None:
    """A store at byte -4: inside with four bytes before the address, outside with none."""
    memory = np.zeros(3, np.int32)
    for before, expected in ((4, [0, 8, 0]), (0, [0, 0, 0])):
        memory[:] = 0
        at = Binding(
            index=0, kind="buffer", address=memory[2:].ctypes.data, length=4, before=before
        )
        result = executor.run(launch("back", 1, 1, at))
        assert memory.tolist() == expected
        if before:
            assert isinstance(result, Ran)
        else:
            assert isinstance(result, Findings)
            assert [(f.kind, f.offset, f.length) for f in result.findings] == [("write", -4, 4)]


def test_a_loop_without_end_is_stopped(executor: Executor) -> None:
    result = executor.run(launch("forever", 1, 1, bind(0, np.zeros(1, np.int32))))
    assert isinstance(result, NotExecutable)
    assert "had not ended after 0.5 s" in result.reason
    absolute(executor)


def test_a_segmentation_fault_is_a_value(section: Path, tmp_path: Path) -> None:
    with Executor(section, tmp_path, check=False) as unchecked:
        result = unchecked.run(launch("wild", 1, 1, bind(0, np.zeros(1, np.int32))))
        assert isinstance(result, NotExecutable)
        assert "SIGSEGV at address 0x1000" in result.reason
        absolute(unchecked)


def test_an_endless_recursion_is_a_value(executor: Executor) -> None:
    result = executor.run(launch("recurse", 1, 1, bind(0, np.zeros(1, np.int32))))
    assert isinstance(result, NotExecutable)
    absolute(executor)


def test_a_killed_worker_is_replaced(executor: Executor) -> None:
    absolute(executor)
    client = executor._clients[0]
    assert client._process is not None
    client._process.kill()
    client._process.wait()
    absolute(executor)


def test_unknown_kernels_and_functions_are_not_executable(executor: Executor) -> None:
    missing = executor.run(launch("gather_kernel_5", 1, 1))
    assert isinstance(missing, NotExecutable)
    assert "compiled at run time" in missing.reason
    unknown = executor.run(launch("unknown", 1, 1))
    assert isinstance(unknown, NotExecutable)
    assert "air.unheard_of.f32" in unknown.reason


def test_pointers_inside_shared_memory_are_followed(section: Path, tmp_path: Path) -> None:
    region = create_region(1 << 20)
    try:
        with Executor(section, tmp_path, regions=[region]) as executor:
            target = region.address + 0x8000
            ctypes.c_uint64.from_address(region.address).value = target
            at = Binding(index=0, kind="buffer", address=region.address, length=8)
            assert isinstance(executor.run(launch("follow", 1, 1, at)), Ran)
            assert ctypes.c_int32.from_address(target).value == 77
            ctypes.c_uint64.from_address(region.address).value = region.address + (1 << 20)
            result = executor.run(launch("follow", 1, 1, at))
            assert isinstance(result, Findings)
    finally:
        release_region(region)


def test_compiled_code_is_kept_on_disk(section: Path, tmp_path: Path) -> None:
    with Executor(section, tmp_path, workers=1) as executor:
        absolute(executor)
    kept = [p for p in (tmp_path / "kernels").rglob("*") if p.is_file()]
    assert len(kept) == 1
    kept[0].write_bytes(b"cut short")
    with Executor(section, tmp_path, workers=1) as executor:
        absolute(executor)
    assert kept[0].stat().st_size > 100


def test_merge_joins_what_touches() -> None:
    assert merge([(5, 9), (0, 3), (3, 4), (8, 12)]) == [(0, 4), (5, 12)]
    assert merge([]) == []


def test_the_slack_of_a_buffer_is_noted_and_not_found_wrong(executor: Executor) -> None:
    given, out = -np.ones(12, np.float32), np.zeros(12, np.float32)
    bindings = [
        Binding(index=i, kind="buffer", address=a.ctypes.data, length=48, slack=8)
        for i, a in enumerate((out, given))
    ]
    result = executor.run(launch("abs", 12, 32, *bindings))
    assert isinstance(result, Ran)
    assert [str(note) for note in result.notes] == [
        "reads past the end of buffer 1 (in0, 40 bytes), inside its allocation, at byte 40 "
        "(2 times)",
        "writes past the end of buffer 0 (out, 40 bytes), inside its allocation, at byte 40 "
        "(2 times)",
    ]
    assert out.tolist() == [1] * 12


def test_the_direction_of_errors_changes_from_launch_to_launch(
    section: Path, tmp_path: Path
) -> None:
    given = np.full(1, 0.5, np.float32)
    exp = write_library(
        tmp_path / "metal_basic", {"grow": elementwise("air.exp.f32", "float", ["float"], "grow")}
    )
    found = {}
    with Executor(exp, tmp_path / "cache", workers=1) as executor:
        for direction in directions("worst"):
            executor.direction = direction
            out = np.zeros(1, np.float32)
            assert isinstance(executor.run(launch("grow", 1, 1, bind(0, out), bind(1, given))), Ran)
            found[direction] = int(out.view(np.int32)[0])
    assert found["up"] - found["down"] == 8
    assert {found["odd"], found["even"]} == {found["up"], found["down"]}
