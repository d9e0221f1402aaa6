"""Functions that a GPU only approximates: computed in double, rounded once, then moved on demand.

Nearest is what an ideal device would return. The other directions end where the error that the
Metal specification allows ends, to see whether a verdict depends on it. Fast variants that the
specification gives as formulas have the bound that follows from the formula.
"""

from __future__ import annotations

from .interface import Body, Bound, Direction, External, Family
from .types import bits

__all__ = ["FAMILIES"]

_ARITY_TWO = {"atan2", "pow", "powr"}
_LIBRARY = {
    "exp10": "opscan_exp10",
    "sinpi": "opscan_sinpi",
    "cospi": "opscan_cospi",
    "powr": "pow",
    "rsqrt": "opscan_rsqrt",
}
_PRECISE = {
    "acos": 4, "acosh": 4, "asin": 4, "asinh": 4, "atan": 5, "atanh": 5, "atan2": 6, "cosh": 4,
    "exp": 4, "exp2": 4, "exp10": 4, "log": 4, "log2": 4, "log10": 4, "pow": 16, "powr": 16,
    "sinh": 4, "tan": 6,
}  # fmt: skip
_PRECISE_TO_ONE = {"cos": 4, "cospi": 4, "sin": 4, "sinpi": 4, "tanh": 5}
_INFINITY = {16: "31744", 32: "2139095040"}


_UP = {"up": "xor i1 true, false", "down": "xor i1 true, true",
       "odd": "xor i1 %last, false", "even": "xor i1 %last, true"}  # fmt: skip


def _count(kind: str, bound: Bound) -> tuple[str, tuple[str, ...]]:
    """LLVM lines that compute %ulps."""
    w = bits(kind)
    if not bound.per_argument:
        return f"  %ulps = add i{w} 0, {bound.ulps}\n", ()
    return (
        f"  %scaled = fmul double %aw, {bound.per_argument}\n"
        "  %size = call double @llvm.fabs.f64(double %scaled)\n"
        f"  %steps = call i{w} @llvm.fptosi.sat.i{w}.f64(double %size)\n"
        f"  %ulps = add i{w} %steps, {bound.ulps}\n",
        (
            "declare double @llvm.fabs.f64(double)",
            f"declare i{w} @llvm.fptosi.sat.i{w}.f64(double)",
        ),
    )


def _shift(kind: str, direction: Direction, bound: Bound) -> tuple[str, tuple[str, ...]]:
    """LLVM lines from %n, the nearest value, to %m, the end of the allowed error."""
    w, sign = bits(kind), 1 << (bits(kind) - 1)
    count, needs = _count(kind, bound)
    text = (
        f"{count}  %bits = bitcast {kind} %n to i{w}\n  %mag = and i{w} %bits, {sign - 1}\n"
        f"  %sign = and i{w} %bits, {-sign}\n  %last = trunc i{w} %bits to i1\n"
        f"  %up = {_UP[direction]}\n  %negative = icmp slt i{w} %bits, 0\n"
        "  %away = xor i1 %up, %negative\n"
        f"  %more = add i{w} %mag, %ulps\n"
        f"  %big = call i{w} @llvm.umin.i{w}(i{w} %more, i{w} {_INFINITY[w]})\n"
        f"  %small = call i{w} @llvm.usub.sat.i{w}(i{w} %mag, i{w} %ulps)\n"
        f"  %moved = select i1 %away, i{w} %big, i{w} %small\n"
        f"  %fixed0 = icmp eq i{w} %mag, 0\n  %fixed1 = icmp uge i{w} %mag, {_INFINITY[w]}\n"
        f"  %fixed = or i1 %fixed0, %fixed1\n"
        f"  %new = select i1 %fixed, i{w} %mag, i{w} %moved\n  %both = or i{w} %new, %sign\n"
        f"  %f = bitcast i{w} %both to {kind}\n{_add(kind, bound.absolute)}"
    )
    needs += tuple(f"declare i{w} @llvm.{f}.i{w}(i{w}, i{w})" for f in ("umin", "usub.sat"))
    return text, needs


def _add(kind: str, absolute: float) -> str:
    """LLVM lines from %f to %m, `absolute` further in the same direction."""
    return (
        f"  %delta = select i1 %up, double {absolute}, double -{absolute}\n"
        f"  %fw = fpext {kind} %f to double\n  %fm = fadd double %fw, %delta\n"
        f"  %fn = fptrunc double %fm to {kind}\n"
        f"  %m = select i1 %fixed, {kind} %f, {kind} %fn\n"
    )


def _limit(kind: str, limit: float) -> str:
    """LLVM lines from %m to %r, no larger in magnitude than `limit`; NaN stays."""
    return (
        f"  %high = fcmp ogt {kind} %m, {limit}\n  %low = fcmp olt {kind} %m, -{limit}\n"
        f"  %h = select i1 %high, {kind} {limit}, {kind} %m\n"
        f"  %r = select i1 %low, {kind} -{limit}, {kind} %h\n"
    )


def _value(operation: str, kind: str, arity: int) -> Body:
    """LLVM lines that compute %n, the nearest value, in double."""
    name = _LIBRARY.get(operation, operation)
    widen = "".join(f"  %{n}w = fpext {kind} %{n} to double\n" for n in "ab"[:arity])
    given = ", ".join(f"double %{n}w" for n in "ab"[:arity])
    types = ", ".join(["double"] * arity)
    return Body(
        f"{widen}  %d = call double @{name}({given})\n  %n = fptrunc double %d to {kind}\n",
        (f"declare double @{name}({types}) nounwind willreturn memory(none)",),
    )


def _lower(bound: Bound, external: External, direction: Direction) -> Body:
    kind = external.result
    value = _value(external.operation, kind, 2 if external.operation in _ARITY_TWO else 1)
    if direction == "nearest":
        return Body(f"{value.text}  ret {kind} %n\n", value.needs)
    text, needs = _shift(kind, direction, bound)
    last = "%m"
    if bound.limit is not None:
        text, last = text + _limit(kind, bound.limit), "%r"
    return Body(f"{value.text}{text}  ret {kind} {last}\n", value.needs + needs)


def _sine_and_cosine(bound: Bound, external: External, direction: Direction) -> Body:
    """Returns the sine and stores the cosine through the pointer %b."""
    kind, pointer = external.result, external.arguments[1]
    sine = External(external.name.replace("sincos", "sin"), kind, (kind,))
    cosine = External(external.name.replace("sincos", "cos"), kind, (kind,))
    bodies = [_lower(bound, e, direction) for e in (sine, cosine)]
    helpers = tuple(
        f"define internal {kind} @opscan.{e.name}({kind} %a) alwaysinline {{\n{b.text}}}"
        for e, b in zip((sine, cosine), bodies, strict=True)
    )
    return Body(
        f"  %s = call {kind} @opscan.{sine.name}({kind} %a)\n"
        f"  %k = call {kind} @opscan.{cosine.name}({kind} %a)\n"
        f"  store {kind} %k, {pointer} %b\n  ret {kind} %s\n",
        bodies[0].needs + bodies[1].needs + helpers,
    )


def _family(names: str, suffix: str, bound: Bound) -> Family:
    def lower(external: External, direction: Direction) -> Body:
        return _lower(bound, external, direction)

    return Family(rf"air\.({names})\.{suffix}", "approximate", lower, bound)


def _sincos_family(suffix: str, bound: Bound) -> Family:
    def lower(external: External, direction: Direction) -> Body:
        return _sine_and_cosine(bound, external, direction)

    return Family(rf"air\.(precise_)?sincos\.{suffix}", "approximate", lower, bound)


def _precise() -> list[Family]:
    families = [_family(f"(precise_)?{n}", "f32", Bound(u)) for n, u in _PRECISE.items()]
    families += [
        _family(f"(precise_)?{n}", "f32", Bound(u, limit=1.0)) for n, u in _PRECISE_TO_ONE.items()
    ]
    return families


FAMILIES = (
    *_precise(),
    _family("|".join(_PRECISE), "f16", Bound(1)),
    _family("|".join(_PRECISE_TO_ONE), "f16", Bound(1, limit=1.0)),
    _sincos_family("f32", Bound(4, limit=1.0)),
    _sincos_family("f16", Bound(1, limit=1.0)),
    _family("fast_exp|fast_exp2", "f32", Bound(3, per_argument=2.0)),
    # exp2(x log2(10)): 3 + floor(2 * 3.33 |x|), and the product's rounding moves it by 1.15 |x|.
    _family("fast_exp10", "f32", Bound(3, per_argument=8.0)),
    # (t - 1) / (t + 1), t = exp(2x): t errs by 3 + 4|x| units, of which (1 - tanh^2) / 2 arrive,
    # less than 2^-22 for any x; sum and difference take a unit and the division 2.5.
    _family("fast_tanh", "f32", Bound(4, absolute=2.0**-22, limit=1.0)),
    _family("fast_(acos|asin|atan)", "f32", Bound(5)),
    _family("fast_rsqrt", "f32", Bound(2)),
)
