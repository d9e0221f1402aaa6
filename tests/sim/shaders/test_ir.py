from __future__ import annotations

import pytest

from scanner.sim.shaders import ir
from scanner.sim.shaders.functions import types
from scanner.sim.shaders.functions.interface import External
from scanner.sim.shaders.kernel import read_kernel
from tests.sim.shaders.air import GRID, buffer, module, position


def test_split_minds_brackets_and_quotes() -> None:
    assert ir.split('i32 %a, <2 x i32> <i32 1, i32 2>, ptr "x,y" %b') == [
        "i32 %a", "<2 x i32> <i32 1, i32 2>", 'ptr "x,y" %b',
    ]  # fmt: skip
    assert ir.split("") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ptr addrspace(1) readonly captures(none) %x", "ptr addrspace(1)"),
        ("noundef float %y", "float"),
        ("<4 x half> %z", "<4 x half>"),
        ("fastcc noundef i64", "i64"),
        ("void", "void"),
        ("%struct.Pair %p", "%struct.Pair"),
        ("[2 x i32] %a", "[2 x i32]"),
    ],
)
def test_argument_type(text: str, expected: str) -> None:
    assert ir.argument_type(text) == expected


def test_declarations() -> None:
    text = (
        "declare <4 x float> @air.fma.v4f32(<4 x float>, <4 x float>, <4 x float>) "
        "local_unnamed_addr #1\n"
        "declare void @air.wg.barrier(i32, i32) #2\n"
        "define void @kernel() {\n"
    )
    assert ir.declarations(text) == [
        External("air.fma.v4f32", "<4 x float>", ("<4 x float>",) * 3),
        External("air.wg.barrier", "void", ("i32", "i32")),
    ]


def test_call_in_a_line() -> None:
    line = "  %3 = tail call fastcc nnan float @air.simd_sum.f32(float noundef %2) #7, !tbaa !3"
    call = ir.call_in(line)
    assert call == ir.Call("%3", "float", "air.simd_sum.f32", ("float noundef %2",))
    nested = ir.call_in("  call void @f(ptr captures(none) %a, i64 ptrtoint (ptr @g to i64))")
    assert nested is not None
    assert nested.arguments == ("ptr captures(none) %a", "i64 ptrtoint (ptr @g to i64)")
    assert ir.call_in("  %1 = add i32 %a, %b") is None


@pytest.mark.parametrize(
    ("kind", "size"),
    [("i1", "1"), ("i8", "1"), ("bfloat", "2"), ("<3 x float>", "12"), ("<4 x i16>", "8"),
     ("ptr addrspace(2)", "8"), ("i64", "8")],
)  # fmt: skip
def test_store_size(kind: str, size: str) -> None:
    assert ir.store_size(kind) == size


def test_store_size_of_a_struct_is_left_to_llvm() -> None:
    assert "getelementptr (%struct.S" in ir.store_size("%struct.S")


def test_types() -> None:
    assert types.llvm_type("v4bf16") == "<4 x bfloat>"
    assert types.mangled("<2 x half>") == "v2f16"
    assert types.lanes("float") == 0
    assert types.element("<3 x i64>") == "i64"
    assert types.bits("<3 x i64>") == 64
    with pytest.raises(KeyError):
        types.llvm_type("struct")


def test_kernel_metadata() -> None:
    text = module(
        "k", [buffer("out", 3, "half"), buffer("in", 0, space=2), GRID], "  ret void",
        options=["air.compile.denorms_disable"], max_threads=512,
    )  # fmt: skip
    kernel = read_kernel(text, "k")
    assert kernel.flush_denormals
    assert kernel.fast_math
    assert kernel.max_threads == 512
    out, given, grid = kernel.arguments
    assert (out.index, out.space, out.name, out.type_name, out.writable) == (
        3, 1, "out", "half", True,
    )  # fmt: skip
    assert (given.index, given.space, given.writable) == (0, 2, False)
    assert (grid.role, grid.is_buffer) == ("thread_position_in_grid", False)
    assert kernel.buffers == (out, given)


def test_a_module_without_a_kernel() -> None:
    with pytest.raises(ValueError, match="no kernel"):
        read_kernel("define void @f() {\n  ret void\n}\n", "f")


def test_a_kernel_without_limits_is_precise_when_told() -> None:
    kernel = read_kernel(module("k", [position("threads_per_grid", "n")], "  ret void"), "k")
    assert not kernel.fast_math
    assert kernel.max_threads == 0
