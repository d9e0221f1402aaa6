"""Atomics and fences, the bounds check of one access, and the intrinsics that LLVM knows."""

from __future__ import annotations

from .interface import Body, Direction, External, Family
from .types import bits, element, is_float

__all__ = ["FAMILIES", "check_definition", "checked"]

_OPERATIONS = {
    "add": "add",
    "sub": "sub",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "xchg": "xchg",
    "max": "max",
    "min": "min",
}


def checked(space: int) -> str:
    """Name of the check of an access through address space `space`."""
    return f"opscan.checked.{space}"


def check_definition(space: int) -> str:
    """The check: returns the pointer, or a harmless one after telling the run-time library."""
    pointer = f"ptr addrspace({space})" if space else "ptr"
    cast = f"  %s = addrspacecast ptr %v to {pointer}\n" if space else ""
    given = f"  %g = addrspacecast {pointer} %p to ptr\n" if space else ""
    return (
        f"define internal {pointer} @{checked(space)}({pointer} %p, i64 %size, i64 %low, "
        "i64 %high, i32 %site, i32 %write) alwaysinline {\n"
        f"  %a = ptrtoint {pointer} %p to i64\n  %e = add i64 %a, %size\n"
        "  %above = icmp uge i64 %a, %low\n  %below = icmp ule i64 %e, %high\n"
        "  %ok = and i1 %above, %below\n  br i1 %ok, label %good, label %bad\n"
        f"good:\n  ret {pointer} %p\nbad:\n  %o = sub i64 %a, %low\n{given}"
        "  %v = call ptr @opscan_violation(i32 %site, i64 %o, i64 %size, i32 %write, "
        f"ptr %{'g' if space else 'p'}) cold\n"
        f"{cast}  ret {pointer} %{'s' if space else 'v'}\n}}"
    )


def _operation(external: External) -> tuple[str, str]:
    """(LLVM operation, value type) of a read-modify-write."""
    name, kind = external.parts[2], external.arguments[1]
    operation = _OPERATIONS[name]
    if name in ("max", "min") and not is_float(kind):
        operation = ("u" if external.parts[3] == "u" else "") + name
    elif is_float(kind) and name != "xchg":
        operation = "f" + name
    return operation, kind


def _read_modify_write(external: External, _: Direction) -> Body:
    operation, kind = _operation(external)
    text = f"  %r = atomicrmw {operation} {external.arguments[0]} %a, {kind} %b monotonic\n"
    return Body(text + ("  ret void\n" if external.result == "void" else f"  ret {kind} %r\n"))


def _load(external: External, _: Direction) -> Body:
    kind = external.result
    align = bits(kind) // 8
    return Body(
        f"  %r = load atomic {kind}, {external.arguments[0]} %a monotonic, align {align}\n"
        f"  ret {kind} %r\n"
    )


def _store(external: External, _: Direction) -> Body:
    kind = external.arguments[1]
    align = bits(kind) // 8
    return Body(
        f"  store atomic {kind} %b, {external.arguments[0]} %a monotonic, align {align}\n"
        "  ret void\n"
    )


def _compare_exchange(external: External, _: Direction) -> Body:
    """Returns the old value and leaves it in what %b points to; floats are compared as bits."""
    kind, pointer, expected = external.result, *external.arguments[:2]
    word = f"i{bits(element(kind))}"
    new = f"  %new = bitcast {kind} %c to {word}\n"
    return Body(
        f"  %want = load {word}, {expected} %b\n{new}"
        f"  %x = cmpxchg {pointer} %a, {word} %want, {word} %new monotonic monotonic\n"
        f"  %o = extractvalue {{ {word}, i1 }} %x, 0\n  store {word} %o, {expected} %b\n"
        f"  %r = bitcast {word} %o to {kind}\n  ret {kind} %r\n"
    )


def _fence(_: External, __: Direction) -> Body:
    return Body("  fence seq_cst\n  ret void\n")


_AT = r"air\.atomic\.(global|local)"
_KNOWN = (
    r"llvm\.(lifetime\.(start|end)\..*|memcpy\..*|memmove\..*|memset\..*|assume|trap"
    r"|experimental\.noalias\.scope\.decl|(s|u)(max|min)\..*|abs\..*|(u|s)(add|sub)\.sat\..*"
    r"|(u|s)(add|sub|mul)\.with\.overflow\..*|fsh[lr]\..*|ctpop\..*|ct[lt]z\..*|bswap\..*"
    r"|bitreverse\..*|vector\.reduce\.(add|mul|and|or|xor|[su](max|min))\..*)"
)
FAMILIES = (
    Family(rf"{_AT}\.(add|sub|and|or|xor|xchg|max|min)\.([su]\.)?[if](32|64)", "exact",
           _read_modify_write, note="the order of threads is that of this executor"),
    Family(rf"{_AT}\.load\.[if](32|64)", "exact", _load),
    Family(rf"{_AT}\.store\.[if](32|64)", "exact", _store),
    Family(rf"{_AT}\.cmpxchg\.weak\.[if](32|64)", "exact", _compare_exchange),
    Family(r"air\.atomic\.fence", "exact", _fence),
    Family(_KNOWN, "exact", None),
)  # fmt: skip
