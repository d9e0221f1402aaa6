"""Floating-point functions with one right answer: selections, roundings, correctly rounded ones."""

from __future__ import annotations

from .conversions import TO_BFLOAT, to_bfloat
from .interface import Body, Direction, External, Family
from .types import element, lanes, mangled, vector_of

__all__ = ["FAMILIES"]

_F = r"(v\d)?(f32|f16)"
_VARIANT = r"air\.(fast_|precise_)?"
_INTRINSICS = {
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "round": "round",
    "copysign": "copysign",
    "fmax": "maxnum",
    "fmin": "minnum",
    "sqrt": "sqrt",
}


def _call(name: str, external: External) -> Body:
    kind = external.result
    given = ", ".join(f"{kind} %{chr(97 + i)}" for i in range(len(external.arguments)))
    full = f"llvm.{name}.{mangled(kind)}"
    return Body(
        f"  %r = call {kind} @{full}({given})\n  ret {kind} %r\n",
        (f"declare {kind} @{full}({', '.join(external.arguments)})",),
    )


def _intrinsic(external: External, _: Direction) -> Body:
    return _call(_INTRINSICS[external.operation], external)


def _fma(external: External, _: Direction) -> Body:
    """A half fma is not the float one rounded again; the runtime library has an exact one."""
    if external.result == "half":
        casts = "".join(f"  %{n}i = bitcast half %{n} to i16\n" for n in "abc")
        return Body(
            f"{casts}  %i = call i16 @opscan_fma_half(i16 %ai, i16 %bi, i16 %ci)\n"
            "  %r = bitcast i16 %i to half\n  ret half %r\n",
            ("declare i16 @opscan_fma_half(i16, i16, i16) nounwind willreturn memory(none)",),
        )
    if external.result == "bfloat":
        widen = "".join(f"  %{n}w = fpext bfloat %{n} to float\n" for n in "abc")
        return Body(
            f"{widen}  %w = call float @llvm.fma.f32(float %aw, float %bw, float %cw)\n"
            f"{to_bfloat('%w', '%r')}  ret bfloat %r\n",
            ("declare float @llvm.fma.f32(float, float, float)", TO_BFLOAT),
        )
    return _call("fma", external)


_ONE_LESS = {"float": "0x3FEFFFFFE0000000", "half": "0xH3BFF"}


def _fract(external: External, _: Direction) -> Body:
    """min(x - floor(x), the largest value below 1); infinities give 0, NaN stays."""
    kind = external.result
    w = mangled(kind)
    return Body(
        f"  %f = call {kind} @llvm.floor.{w}({kind} %a)\n  %d = fsub {kind} %a, %f\n"
        f"  %c = fcmp ogt {kind} %d, {_ONE_LESS[kind]}\n"
        f"  %m = select i1 %c, {kind} {_ONE_LESS[kind]}, {kind} %d\n"
        f"  %x = call {kind} @llvm.fabs.{w}({kind} %a)\n"
        f"  %i = fcmp oeq {kind} %x, {'0x7FF0000000000000' if kind == 'float' else '0xH7C00'}\n"
        f"  %r = select i1 %i, {kind} 0.0, {kind} %m\n  ret {kind} %r\n",
        (
            f"declare {kind} @llvm.floor.{w}({kind})",
            f"declare {kind} @llvm.fabs.{w}({kind})",
        ),
    )


def _clamp(external: External, _: Direction) -> Body:
    """fmin(fmax(x, low), high), as the specification writes it."""
    kind, w = external.result, mangled(external.result)
    return Body(
        f"  %m = call {kind} @llvm.maxnum.{w}({kind} %a, {kind} %b)\n"
        f"  %r = call {kind} @llvm.minnum.{w}({kind} %m, {kind} %c)\n  ret {kind} %r\n",
        tuple(f"declare {kind} @llvm.{n}.{w}({kind}, {kind})" for n in ("maxnum", "minnum")),
    )


def _saturate(external: External, _: Direction) -> Body:
    kind, w = external.result, mangled(external.result)
    return Body(
        f"  %m = call {kind} @llvm.maxnum.{w}({kind} %a, {kind} 0.0)\n"
        f"  %r = call {kind} @llvm.minnum.{w}({kind} %m, {kind} 1.0)\n  ret {kind} %r\n",
        tuple(f"declare {kind} @llvm.{n}.{w}({kind}, {kind})" for n in ("maxnum", "minnum")),
    )


def _sign(external: External, _: Direction) -> Body:
    """1, -1, or the zero given; 0 for NaN."""
    kind = external.result
    return Body(
        f"  %p = fcmp ogt {kind} %a, 0.0\n  %n = fcmp olt {kind} %a, 0.0\n"
        f"  %u = fcmp uno {kind} %a, 0.0\n"
        f"  %z = select i1 %u, {kind} 0.0, {kind} %a\n"
        f"  %m = select i1 %n, {kind} -1.0, {kind} %z\n"
        f"  %r = select i1 %p, {kind} 1.0, {kind} %m\n  ret {kind} %r\n"
    )


def _classify(external: External, _: Direction) -> Body:
    kind = external.arguments[0]
    tests = {"isnan": 3, "isinf": 516, "isfinite": 504, "isnormal": 264}
    name = f"llvm.is.fpclass.{mangled(kind)}"
    mask = tests[external.operation]
    widen = external.result != "i1"
    text = f"  %t = call i1 @{name}({kind} %a, i32 {mask})\n"
    text += f"  %r = zext i1 %t to {external.result}\n" if widen else ""
    return Body(
        f"{text}  ret {external.result} %{'r' if widen else 't'}\n",
        (f"declare i1 @{name}({kind}, i32 immarg)",),
    )


def _remainder(_: External, __: Direction) -> Body:
    return Body(
        "  %r = call float @fmodf(float %a, float %b)\n  ret float %r\n",
        ("declare float @fmodf(float, float) nounwind willreturn memory(none)",),
    )


def _next_after(external: External, _: Direction) -> Body:
    if external.result == "half":
        return Body(
            "  %x = bitcast half %a to i16\n  %y = bitcast half %b to i16\n"
            "  %i = call i16 @opscan_nextafter_half(i16 %x, i16 %y)\n"
            "  %r = bitcast i16 %i to half\n  ret half %r\n",
            ("declare i16 @opscan_nextafter_half(i16, i16) nounwind willreturn memory(none)",),
        )
    return Body(
        "  %r = call float @nextafterf(float %a, float %b)\n  ret float %r\n",
        ("declare float @nextafterf(float, float) nounwind willreturn memory(none)",),
    )


def _scale(_: External, __: Direction) -> Body:
    return Body(
        "  %r = call float @ldexpf(float %a, i32 %b)\n  ret float %r\n",
        ("declare float @ldexpf(float, i32) nounwind willreturn memory(none)",),
    )


def _reciprocal_root(external: External, _: Direction) -> Body:
    """In double, so that one rounding is left."""
    kind = external.result
    return Body(
        f"  %w = fpext {kind} %a to double\n  %s = call double @llvm.sqrt.f64(double %w)\n"
        f"  %q = fdiv double 1.0, %s\n  %r = fptrunc double %q to {kind}\n  ret {kind} %r\n",
        ("declare double @llvm.sqrt.f64(double)",),
    )


def _dot(external: External, direction: Direction) -> Body:
    """A product, then one fma an element, in order."""
    kind, scalar = external.arguments[0], element(external.arguments[0])
    lines, last = [], ""
    fma = _fma(External("fma", scalar, (scalar,) * 3), direction)
    needs = (f"define internal {scalar} @opscan.fma.{mangled(scalar)}"
             f"({scalar} %a, {scalar} %b, {scalar} %c) alwaysinline {{\n{fma.text}}}",)  # fmt: skip
    for i in range(lanes(kind)):
        lines.append(f"  %x{i} = extractelement {kind} %a, i32 {i}\n")
        lines.append(f"  %y{i} = extractelement {kind} %b, i32 {i}\n")
        if i == 0:
            lines.append(f"  %s{i} = fmul {scalar} %x{i}, %y{i}\n")
        else:
            lines.append(
                f"  %s{i} = call {scalar} @opscan.fma.{mangled(scalar)}"
                f"({scalar} %x{i}, {scalar} %y{i}, {scalar} {last})\n"
            )
        last = f"%s{i}"
    return Body(f"{''.join(lines)}  ret {scalar} {last}\n", fma.needs + needs)


def _fused(external: External, direction: Direction) -> Body:
    """`a*b+c` that may be contracted: Apple's processors have fma, so it is."""
    kind, count = external.result, lanes(external.result)
    if not count or element(kind) == "float":
        return _fma(external, direction)
    raise ValueError(f"no fused multiply-add for {vector_of(element(kind), count)}")


FAMILIES = (
    Family(rf"{_VARIANT}(fabs|copysign|fmax|fmin)\.{_F}", "exact", _intrinsic),
    Family(rf"{_VARIANT}(floor|ceil|trunc|rint|round)\.{_F}", "exact", _intrinsic),
    Family(rf"{_VARIANT}clamp\.{_F}", "exact", _clamp),
    Family(rf"{_VARIANT}saturate\.{_F}", "exact", _saturate),
    Family(rf"{_VARIANT}sign\.(f32|f16)", "exact", _sign),
    Family(rf"{_VARIANT}(isnan|isinf|isfinite|isnormal)\.(f32|f16)", "exact", _classify),
    Family(rf"{_VARIANT}fmod\.f32", "exact", _remainder),
    Family(r"air\.nextafter\.(f32|f16)", "exact", _next_after),
    Family(rf"{_VARIANT}fract\.(f32|f16)", "ieee", _fract),
    Family(r"air\.(precise_)?sqrt\.(v\d)?(f32|f16)", "ieee", _intrinsic),
    Family(r"air\.(precise_)?rsqrt\.(f32|f16)", "ieee", _reciprocal_root),
    Family(rf"{_VARIANT}fma\.((v\d)?f32|f16|bf16)", "ieee", _fma),
    Family(r"air\.ldexp\.f32", "ieee", _scale),
    Family(
        r"air\.dot\.v\d(f32|f16)", "ieee", _dot,
        note="the specification leaves the order and the contraction open",
    ),
    Family(
        r"llvm\.fmuladd\.((v\d)?f32|f16|bf16)", "ieee", _fused,
        note="contraction is allowed, not required",
    ),
)  # fmt: skip
