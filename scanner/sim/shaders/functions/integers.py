"""Integer functions: exact."""

from __future__ import annotations

from .interface import Body, Direction, External, Family
from .types import bits, element, lanes, mangled, vector_of

__all__ = ["FAMILIES"]

_INT = r"(v\d)?i(8|16|32|64)"


def _intrinsic(name: str, external: External, tail: str = "") -> Body:
    """Calls `llvm.NAME` on all arguments; `tail` is what the intrinsic wants besides."""
    kind = external.result
    given = ", ".join(f"{t} %{chr(97 + i)}" for i, t in enumerate(external.arguments))
    types = ", ".join(external.arguments) + (", i1" if tail else "")
    full = f"llvm.{name}.{mangled(kind)}"
    text = f"  %r = call {kind} @{full}({given}{tail})\n  ret {kind} %r\n"
    return Body(text, (f"declare {kind} @{full}({types})",))


def _extreme(external: External, _: Direction) -> Body:
    sign = "s" if external.signed else "u"
    return _intrinsic(sign + external.operation, external)


def _absolute(external: External, _: Direction) -> Body:
    if not external.signed:
        return Body(f"  ret {external.result} %a\n")
    return _intrinsic("abs", external, ", i1 false")


def _saturating(external: External, _: Direction) -> Body:
    sign = "s" if external.signed else "u"
    return _intrinsic(sign + external.operation.replace("_", "."), external)


def _count_zeros(external: External, _: Direction) -> Body:
    """The flag that says zero is undefined is not heeded: Metal defines it as the width."""
    name = {"clz": "ctlz", "ctz": "cttz"}[external.operation]
    only_value = External(external.name, external.result, external.arguments[:1])
    return _intrinsic(name, only_value, ", i1 false")


def _bit_count(external: External, _: Direction) -> Body:
    names = {"popcount": "ctpop", "reverse_bits": "bitreverse"}
    return _intrinsic(names[external.operation], external)


def _multiply_high(external: External, _: Direction) -> Body:
    kind, width = external.result, bits(external.result)
    wide = vector_of(f"i{2 * width}", lanes(kind))
    extend = "sext" if external.signed else "zext"
    shift = f"i{2 * width} {width}"
    amount = "<" + ", ".join([shift] * lanes(kind)) + ">" if lanes(kind) else str(width)
    return Body(
        f"  %x = {extend} {kind} %a to {wide}\n  %y = {extend} {kind} %b to {wide}\n"
        f"  %p = mul {wide} %x, %y\n  %h = lshr {wide} %p, {amount}\n"
        f"  %r = trunc {wide} %h to {kind}\n  ret {kind} %r\n"
    )


def _clamp(external: External, _: Direction) -> Body:
    kind, sign = external.result, "s" if external.signed else "u"
    high, low = f"llvm.{sign}min.{mangled(kind)}", f"llvm.{sign}max.{mangled(kind)}"
    return Body(
        f"  %m = call {kind} @{low}({kind} %a, {kind} %b)\n"
        f"  %r = call {kind} @{high}({kind} %m, {kind} %c)\n  ret {kind} %r\n",
        (f"declare {kind} @{low}({kind}, {kind})", f"declare {kind} @{high}({kind}, {kind})"),
    )


def _difference(external: External, _: Direction) -> Body:
    kind, sign = external.result, "s" if external.signed else "u"
    return Body(
        f"  %x = sub {kind} %a, %b\n  %y = sub {kind} %b, %a\n  %c1 = icmp {sign}gt {kind} %a, %b\n"
        f"  %r = select {'i1' if not lanes(kind) else vector_of('i1', lanes(kind))} %c1, "
        f"{kind} %x, {kind} %y\n  ret {kind} %r\n"
    )


def _truth(external: External, _: Direction) -> Body:
    kind = external.arguments[0]
    name = f"llvm.vector.reduce.{'and' if external.operation == 'all' else 'or'}.{mangled(kind)}"
    scalar = element(kind)
    return Body(
        f"  %r = call {scalar} @{name}({kind} %a)\n  ret {scalar} %r\n",
        (f"declare {scalar} @{name}({kind})",),
    )


FAMILIES = (
    Family(rf"air\.(max|min)\.[su]\.{_INT}", "exact", _extreme),
    Family(rf"air\.abs\.[su]\.{_INT}", "exact", _absolute),
    Family(rf"air\.(add|sub)_sat\.[su]\.{_INT}", "exact", _saturating),
    Family(rf"air\.(clz|ctz)\.{_INT}", "exact", _count_zeros),
    Family(rf"air\.(popcount|reverse_bits)\.{_INT}", "exact", _bit_count),
    Family(rf"air\.mul_hi\.[su]\.{_INT}", "exact", _multiply_high),
    Family(rf"air\.clamp\.[su]\.{_INT}", "exact", _clamp),
    Family(rf"air\.abs_diff\.[su]\.{_INT}", "exact", _difference),
    Family(r"air\.(all|any)\.v\di1", "exact", _truth),
)
