"""Integer division that cannot trap."""

from __future__ import annotations

from .types import element, lanes

__all__ = ["division_definition"]


def division_definition(operation: str, kind: str, name: str) -> str:
    """Defines @name(a, b, site): `sdiv`, `udiv`, `srem` or `urem` for every operand.

    Division by zero is told to the run-time library and gives all ones (the dividend for a
    remainder); the smallest integer divided by -1 wraps. Both are undefined in Metal.
    """
    return _vector(operation, kind, name) if lanes(kind) else _scalar(operation, kind, name)


def _head(kind: str, name: str) -> str:
    return f"define internal {kind} @{name}({kind} %a, {kind} %b, i32 %site) alwaysinline {{\n"


def _vector(operation: str, kind: str, name: str) -> str:
    scalar, inner, lines, last = element(kind), f"{name}.each", "", "poison"
    for i in range(lanes(kind)):
        lines += (
            f"  %a{i} = extractelement {kind} %a, i32 {i}\n"
            f"  %b{i} = extractelement {kind} %b, i32 {i}\n"
            f"  %q{i} = call {scalar} @{inner}({scalar} %a{i}, {scalar} %b{i}, i32 %site)\n"
            f"  %v{i} = insertelement {kind} {last}, {scalar} %q{i}, i32 {i}\n"
        )
        last = f"%v{i}"
    outer = f"{_head(kind, name)}{lines}  ret {kind} {last}\n}}"
    return f"{outer}\n{_scalar(operation, scalar, inner)}"


def _scalar(operation: str, kind: str, name: str) -> str:
    if operation.startswith("s"):
        least = "%n" if operation == "sdiv" else "0"
        safe = (
            f"  %m = icmp eq {kind} %b, -1\n  %n = sub {kind} 0, %a\n"
            f"  %d = select i1 %m, {kind} 1, {kind} %b\n  %q = {operation} {kind} %a, %d\n"
            f"  %r = select i1 %m, {kind} {least}, {kind} %q\n"
        )
    else:
        safe = f"  %r = {operation} {kind} %a, %b\n"
    zero = "-1" if operation.endswith("div") else "%a"
    return (
        f"{_head(kind, name)}  %z = icmp eq {kind} %b, 0\n"
        "  br i1 %z, label %bad, label %good\n"
        "bad:\n  %v = call ptr @opscan_violation(i32 %site, i64 0, i64 0, i32 0, ptr null) cold\n"
        f"  ret {kind} {zero}\ngood:\n{safe}  ret {kind} %r\n}}"
    )
