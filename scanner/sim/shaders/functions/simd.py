"""Functions that threads compute together; the run-time library does the exchange.

Besides its own arguments each gets `%site` (which call of the kernel it is), and `%low`, `%high`
(the addresses that its pointer may reach).
"""

from __future__ import annotations

from .interface import Body, Direction, External, Family
from .types import bits, is_float, lanes

__all__ = ["EXTRA", "FAMILIES", "LANES"]

EXTRA = ("i32 %site", "i64 %low", "i64 %high")
LANES = "declare void @opscan_lanes(i32, i32, i32, i32, i32, ptr, ptr, ptr) nounwind"

# The numbers are those of runtime.h.
_REDUCTIONS = {
    "sum": 1, "product": 2, "max": 3, "min": 4, "and": 5, "or": 6, "xor": 7,
    "prefix_exclusive_sum": 8, "prefix_inclusive_sum": 9,
    "prefix_exclusive_product": 10, "prefix_inclusive_product": 11,
}  # fmt: skip
_SHUFFLES = {
    "shuffle": 20, "broadcast": 20, "shuffle_down": 21, "shuffle_up": 22, "shuffle_xor": 23,
    "shuffle_rotate_down": 24, "shuffle_rotate_up": 25, "broadcast_first": 26,
    "shuffle_and_fill_down": 27, "shuffle_and_fill_up": 28,
}  # fmt: skip
_IS_FIRST, _BALLOT = 30, 31
_F32, _S64, _U64 = 0, 1, 2


def _exchange(op: int, size: int, a: str = "0", b: str = "0", fill: str = "null") -> str:
    return (
        f"  call void @opscan_lanes(i32 {op}, i32 %site, i32 {size}, i32 {a}, i32 {b}, "
        f"ptr %in, ptr {fill}, ptr %out)\n"
    )


def _barrier(_: External, __: Direction) -> Body:
    return Body(
        "  call void @opscan_barrier()\n  ret void\n", ("declare void @opscan_barrier() nounwind",)
    )


def _simd_barrier(_: External, __: Direction) -> Body:
    text = _exchange(0, 0).replace("ptr %in", "ptr null").replace("ptr %out", "ptr null")
    return Body(f"{text}  ret void\n", (LANES,))


def _widening(kind: str, signed: bool) -> tuple[str, str, int, str]:
    """(line from %a to %w, wide type, lane type, line from %o to %r) of a reduction."""
    if kind == "float":
        return "", "float", _F32, ""
    if is_float(kind):
        widen, narrow = f"fpext {kind} %a to float", f"fptrunc float %o to {kind}"
        return f"  %w = {widen}\n", "float", _F32, f"  %r = {narrow}\n"
    type_ = _S64 if signed else _U64
    if kind == "i64":
        return "", "i64", type_, ""
    widen = f"{'sext' if signed else 'zext'} {kind} %a to i64"
    return f"  %w = {widen}\n", "i64", type_, f"  %r = trunc i64 %o to {kind}\n"


def _reduce(external: External, _: Direction) -> Body:
    """A half is summed in float and rounded once; lanes are taken in order."""
    kind = external.result
    widen, wide, type_, narrow = _widening(kind, external.signed)
    op = _REDUCTIONS[external.operation.removeprefix("simd_")]
    return Body(
        f"  %in = alloca {wide}\n  %out = alloca {wide}\n{widen}"
        f"  store {wide} %{'w' if widen else 'a'}, ptr %in\n{_exchange(op, type_)}"
        f"  %o = load {wide}, ptr %out\n{narrow}  ret {kind} %{'r' if narrow else 'o'}\n",
        (LANES,),
    )


def _amount(kind: str, name: str, result: str) -> str:
    if kind == "i32":
        return f"  {result} = add i32 {name}, 0\n"
    return f"  {result} = {'zext' if bits(kind) < 32 else 'trunc'} {kind} {name} to i32\n"


def _byte_size(kind: str) -> int:
    count = lanes(kind)
    return (4 if count == 3 else count or 1) * max(bits(kind), 8) // 8


def _shuffle(external: External, _: Direction) -> Body:
    kind = external.result
    op = _SHUFFLES[external.operation.removeprefix("simd_")]
    fill = "and_fill" in external.operation
    text = f"  %in = alloca {kind}\n  %out = alloca {kind}\n  store {kind} %a, ptr %in\n"
    if fill:
        text += f"  %fill = alloca {kind}\n  store {kind} %b, ptr %fill\n"
    names = "cd" if fill else "b"
    amounts = external.arguments[2 if fill else 1 :]
    for name, amount in zip(names, amounts, strict=False):
        text += _amount(amount, f"%{name}", f"%{name}i")
    by = f"%{names[0]}i" if amounts else "0"
    block = "%di" if fill and len(amounts) > 1 else "0"
    text += _exchange(op, _byte_size(kind), by, block, "%fill" if fill else "null")
    return Body(f"{text}  %r = load {kind}, ptr %out\n  ret {kind} %r\n", (LANES,))


def _is_first(external: External, _: Direction) -> Body:
    text = _exchange(_IS_FIRST, 4).replace("ptr %in", "ptr null")
    return Body(
        f"  %out = alloca i32\n{text}  %o = load i32, ptr %out\n"
        f"  %r = icmp ne i32 %o, 0\n  ret {external.result} %r\n",
        (LANES,),
    )


def _vote(external: External, _: Direction) -> Body:
    op = _REDUCTIONS["or" if external.operation == "simd_any" else "and"]
    return Body(
        "  %in = alloca i64\n  %out = alloca i64\n  %w = zext i1 %a to i64\n"
        f"  store i64 %w, ptr %in\n{_exchange(op, _U64)}"
        f"  %o = load i64, ptr %out\n  %r = icmp ne i64 %o, 0\n  ret {external.result} %r\n",
        (LANES,),
    )


def _ballot(external: External, _: Direction) -> Body:
    return Body(
        "  %in = alloca i32\n  %out = alloca i32\n  %w = zext i1 %a to i32\n"
        f"  store i32 %w, ptr %in\n{_exchange(_BALLOT, 4)}"
        "  %o = load i32, ptr %out\n"
        + (
            "  %r = zext i32 %o to i64\n  ret i64 %r\n"
            if external.result == "i64"
            else "  ret i32 %o\n"
        ),
        (LANES,),
    )


def _width(external: External, _: Direction) -> Body:
    return Body(f"  ret {external.result} 32\n")


def _lane(external: External, _: Direction) -> Body:
    kind = external.result
    narrow = f"  %r = trunc i32 %l to {kind}\n" if kind != "i32" else ""
    return Body(
        f"  %l = call i32 @opscan_lane()\n{narrow}  ret {kind} %{'r' if narrow else 'l'}\n",
        ("declare i32 @opscan_lane() nounwind",),
    )


_VALUE = r"([su]\.)?(v\d)?(bf16|f16|f32|i8|i16|i32|i64)"
FAMILIES = (
    Family(r"air\.(wg|threadgroup)\.barrier", "cooperative", _barrier),
    Family(r"air\.simdgroup\.barrier", "cooperative", _simd_barrier),
    Family(rf"air\.simd_({'|'.join(_REDUCTIONS)})\.([su]\.)?(f16|f32|i8|i16|i32|i64)",
           "cooperative", _reduce, note="the order of a sum is that of the lanes"),
    Family(rf"air\.simd_({'|'.join(_SHUFFLES)})\.{_VALUE}", "cooperative", _shuffle,
           note="a lane that takes no part reads as zero"),
    Family(r"air\.simd_is_first", "cooperative", _is_first),
    Family(r"air\.simd_(any|all)", "cooperative", _vote),
    Family(r"air\.simd_(ballot|active_threads_mask)(\.i64)?", "cooperative", _ballot),
    Family(r"air\.get_simdgroup_size\.i(16|32)", "exact", _width),
    Family(r"air\.get_thread_index_in_simdgroup\.i(16|32)", "cooperative", _lane),
)  # fmt: skip
