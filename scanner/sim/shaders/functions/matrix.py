"""8x8 simdgroup matrices, and the tensor operations that cannot be run.

A lane holds two neighbouring elements of a matrix, as elements 0 and 1 of its 64-element vector;
which two is `opscan_matrix_row` and `opscan_matrix_column` of the run-time library.
"""

from __future__ import annotations

from .conversions import TO_BFLOAT
from .interface import Body, Direction, External, Family
from .memory import check_definition, checked
from .simd import LANES
from .types import bits, element

__all__ = ["FAMILIES"]

_MULTIPLY = 40
_PLACE = (
    "  %lane = call i32 @opscan_lane()\n  %row32 = call i32 @opscan_matrix_row(i32 %lane)\n"
    "  %column32 = call i32 @opscan_matrix_column(i32 %lane)\n"
    "  %row = zext i32 %row32 to i64\n  %column = zext i32 %column32 to i64\n"
)
_PLACE_NEEDS = (
    "declare i32 @opscan_lane() nounwind",
    "declare i32 @opscan_matrix_row(i32) nounwind willreturn memory(none)",
    "declare i32 @opscan_matrix_column(i32) nounwind willreturn memory(none)",
)


def _pair(kind: str, first: str, second: str) -> str:
    """LLVM lines that make %m of two elements, zero elsewhere, and return it."""
    scalar = element(kind)
    return (
        f"  %m0 = insertelement {kind} zeroinitializer, {scalar} {first}, i32 0\n"
        f"  %m = insertelement {kind} %m0, {scalar} {second}, i32 1\n  ret {kind} %m\n"
    )


def _filled(external: External, _: Direction) -> Body:
    return Body(_pair(external.result, "%a", "%a"))


def _diagonal(external: External, _: Direction) -> Body:
    kind, scalar = external.result, element(external.result)
    zero = "0.0"
    return Body(
        f"{_PLACE}  %next = add i64 %column, 1\n  %d0 = icmp eq i64 %row, %column\n"
        f"  %d1 = icmp eq i64 %row, %next\n"
        f"  %e0 = select i1 %d0, {scalar} %a, {scalar} {zero}\n"
        f"  %e1 = select i1 %d1, {scalar} %a, {scalar} {zero}\n" + _pair(kind, "%e0", "%e1"),
        _PLACE_NEEDS,
    )


def _steps(types: tuple[str, ...], names: str) -> str:
    """Lines that make %origin (elements from the base), %down (a row) and %right (a column).

    Two forms occur: (row length, origin, transposed), and since Metal 4 (extents, strides, origin).
    """
    if types[0] == "i64":
        length, origin, transposed = (f"%{n}" for n in names)
        return (
            f"  %ox = extractelement <2 x i64> {origin}, i32 0\n"
            f"  %oy = extractelement <2 x i64> {origin}, i32 1\n"
            f"  %oy1 = mul i64 %oy, {length}\n  %origin = add i64 %oy1, %ox\n"
            f"  %down = select i1 {transposed}, i64 1, i64 {length}\n"
            f"  %right = select i1 {transposed}, i64 {length}, i64 1\n"
        )
    strides, origin = f"%{names[1]}", f"%{names[2]}"
    return (
        f"  %right = extractelement <2 x i64> {strides}, i32 0\n"
        f"  %down = extractelement <2 x i64> {strides}, i32 1\n"
        f"  %os = mul <2 x i64> {origin}, {strides}\n"
        "  %ox = extractelement <2 x i64> %os, i32 0\n"
        "  %oy = extractelement <2 x i64> %os, i32 1\n  %origin = add i64 %ox, %oy\n"
    )


def _addresses(external: External, base: str, first: int, scalar: str, write: int) -> str:
    """Lines that make %p0 and %p1, checked; argument number `first` is the pointer %`base`."""
    pointer, rest = external.arguments[first], external.arguments[first + 1 :]
    text = _PLACE + _steps(rest, "abcde"[first + 1 : first + 4])
    text += "  %rows = mul i64 %row, %down\n  %at = add i64 %origin, %rows\n"
    for i in range(2):
        text += (
            f"  %col{i} = add i64 %column, {i}\n  %cols{i} = mul i64 %col{i}, %right\n"
            f"  %i{i} = add i64 %at, %cols{i}\n"
            f"  %q{i} = getelementptr {scalar}, {pointer} {base}, i64 %i{i}\n"
            f"  %p{i} = call {pointer} @{checked(_space(pointer))}({pointer} %q{i}, "
            f"i64 {bits(scalar) // 8}, i64 %low, i64 %high, i32 %site, i32 {write})\n"
        )
    return text


def _space(pointer: str) -> int:
    return int(pointer.split("(")[1].rstrip(")")) if "(" in pointer else 0


def _load(external: External, _: Direction) -> Body:
    pointer, kind = external.arguments[0], external.result
    scalar = element(kind)
    lines = _addresses(external, "%a", 0, scalar, 0)
    lines += "".join(f"  %e{i} = load {scalar}, {pointer} %p{i}\n" for i in range(2))
    return Body(
        lines + _pair(kind, "%e0", "%e1"), (*_PLACE_NEEDS, check_definition(_space(pointer)))
    )


def _store(external: External, _: Direction) -> Body:
    kind, pointer = external.arguments[:2]
    scalar = element(kind)
    lines = _addresses(external, "%b", 1, scalar, 1)
    for i in range(2):
        lines += f"  %v{i} = extractelement {kind} %a, i32 {i}\n"
        lines += f"  store {scalar} %v{i}, {pointer} %p{i}\n"
    return Body(f"{lines}  ret void\n", (*_PLACE_NEEDS, check_definition(_space(pointer))))


def _read(kind: str, name: str, at: int) -> str:
    """Lines that store elements 0 and 1 of %name as floats at index `at` of %in."""
    scalar, text = element(kind), ""
    for i in range(2):
        value = f"%{name}{i}"
        text += f"  {value} = extractelement {kind} %{name}, i32 {i}\n"
        if scalar != "float":
            text += f"  {value}w = fpext {scalar} {value} to float\n"
            value += "w"
        text += f"  %at{at + i} = getelementptr float, ptr %in, i32 {at + i}\n"
        text += f"  store float {value}, ptr %at{at + i}\n"
    return text


def _multiply_accumulate(external: External, _: Direction) -> Body:
    """Products are summed in float, in row order, and rounded once to the result's type."""
    kind, scalar = external.result, element(external.result)
    text = "  %in = alloca [6 x float]\n  %out = alloca [2 x float]\n"
    for i, argument in enumerate(external.arguments):
        text += _read(argument, "abc"[i], 2 * i)
    text += (
        f"  call void @opscan_lanes(i32 {_MULTIPLY}, i32 %site, i32 8, i32 0, i32 0, "
        "ptr %in, ptr null, ptr %out)\n  %second = getelementptr float, ptr %out, i32 1\n"
        "  %f0 = load float, ptr %out\n  %f1 = load float, ptr %second\n"
    )
    needs: tuple[str, ...] = (LANES,)
    names = ("%f0", "%f1")
    if scalar == "bfloat":
        text += "".join(f"  %n{i} = call bfloat @opscan.to_bfloat(float %f{i})\n" for i in range(2))
        names, needs = ("%n0", "%n1"), (LANES, TO_BFLOAT)
    elif scalar != "float":
        text += "".join(f"  %n{i} = fptrunc float %f{i} to {scalar}\n" for i in range(2))
        names = ("%n0", "%n1")
    return Body(text + _pair(kind, *names), needs)


_M = r"v64(f32|f16|bf16)"
_TENSOR = "a tensor operation of the Metal 4 library, whose layout only Apple's compiler knows"
FAMILIES = (
    Family(rf"air\.simdgroup_matrix_8x8_init_filled\.{_M}\.\w+", "exact", _filled),
    Family(rf"air\.simdgroup_matrix_8x8_init_diag\.{_M}\.\w+", "cooperative", _diagonal),
    Family(rf"air\.simdgroup_matrix_8x8_load\.{_M}\.p\d\w+", "cooperative", _load),
    Family(rf"air\.simdgroup_matrix_8x8_store\.{_M}\.p\d\w+", "cooperative", _store),
    Family(rf"air\.simdgroup_matrix_8x8_multiply_accumulate(\.{_M}){{4}}", "cooperative",
           _multiply_accumulate, note="the order of the sum is that of the rows"),
    Family(r"__tensorops_impl_\w+", "unsupported", None, note=_TENSOR),
    Family(r"air\.(init_strided|get_extent|slice)_private_tensor.*", "unsupported", None,
           note=_TENSOR),
    Family(r"air\.get_descriptor_size_tensor", "unsupported", None, note=_TENSOR),
)  # fmt: skip
