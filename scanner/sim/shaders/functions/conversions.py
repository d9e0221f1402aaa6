"""Number conversions: to integers toward zero and saturating, to floats to nearest even.

NaN becomes 0, and a conversion to bool asks whether the value differs from zero. 64-bit integers
reach bfloat by way of float.
"""

from __future__ import annotations

import re

from .interface import Body, Direction, External, Family
from .types import bits, is_float, lanes, llvm_type

__all__ = ["FAMILIES", "TO_BFLOAT", "to_bfloat"]

_NAME = re.compile(
    r"air\.convert\.([fsu])\.((?:v\d)?b?[fi]\d+)(?:\.r[te][ezpn])?\.([fsu])\.((?:v\d)?b?[fi]\d+)$"
)

TO_BFLOAT = """define internal bfloat @opscan.to_bfloat(float %a) alwaysinline {
  %w = bitcast float %a to i32
  %h = lshr i32 %w, 16
  %odd = and i32 %h, 1
  %half = add i32 %odd, 32767
  %up = add i32 %w, %half
  %n = lshr i32 %up, 16
  %quiet = or i32 %h, 64
  %isnan = fcmp uno float %a, 0.0
  %s = select i1 %isnan, i32 %quiet, i32 %n
  %t = trunc i32 %s to i16
  %r = bitcast i16 %t to bfloat
  ret bfloat %r
}"""
"""Written out: processors that have an instruction for it flush denormals in it."""


def to_bfloat(value: str, result: str) -> str:
    """LLVM line that rounds the float named `value` into the bfloat named `result`."""
    return f"  {result} = call bfloat @opscan.to_bfloat(float {value})\n"


def _float_to_float(source: str, target: str) -> Body:
    if source == target:
        return Body(f"  ret {target} %a\n")
    if target == "bfloat":
        widen = f"  %w = fpext {source} %a to float\n" if source == "half" else ""
        value = "%w" if widen else "%a"
        return Body(f"{widen}{to_bfloat(value, '%r')}  ret bfloat %r\n", (TO_BFLOAT,))
    if source == "bfloat" and target == "half":
        return Body(
            "  %w = fpext bfloat %a to float\n  %r = fptrunc float %w to half\n  ret half %r\n"
        )
    operation = "fpext" if bits(target) > bits(source) else "fptrunc"
    return Body(f"  %r = {operation} {source} %a to {target}\n  ret {target} %r\n")


def _to_float(source: str, target: str, signed: bool) -> Body:
    operation = "sitofp" if signed else "uitofp"
    if target == "float":
        return Body(f"  %r = {operation} {source} %a to float\n  ret float %r\n")
    first = f"  %w = {operation} {source} %a to float\n"
    if target == "bfloat":
        return Body(f"{first}{to_bfloat('%w', '%r')}  ret bfloat %r\n", (TO_BFLOAT,))
    return Body(f"{first}  %r = fptrunc float %w to half\n  ret half %r\n")


def _from_float(source: str, target: str, signed: bool) -> Body:
    if target == "i1":
        return Body(f"  %r = fcmp une {source} %a, 0.0\n  ret i1 %r\n")
    widen = "" if source == "float" else f"  %w = fpext {source} %a to float\n"
    value = "%w" if widen else "%a"
    name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{target}.f32"
    return Body(
        f"{widen}  %r = call {target} @{name}(float {value})\n  ret {target} %r\n",
        (f"declare {target} @{name}(float)",),
    )


def _integer(source: str, target: str, signed: bool) -> Body:
    if bits(source) == bits(target):
        return Body(f"  ret {target} %a\n")
    if bits(target) == 1:
        zero = "zeroinitializer" if lanes(source) else "0"
        return Body(f"  %r = icmp ne {source} %a, {zero}\n  ret {target} %r\n")
    wider = bits(target) > bits(source)
    operation = ("sext" if signed else "zext") if wider else "trunc"
    return Body(f"  %r = {operation} {source} %a to {target}\n  ret {target} %r\n")


def _convert(external: External, _: Direction) -> Body:
    match = _NAME.match(external.name)
    if match is None:
        raise ValueError(f"not a conversion: {external.name}")
    target, source = llvm_type(match[2]), llvm_type(match[4])
    if is_float(source):
        if is_float(target):
            return _float_to_float(source, target)
        return _from_float(source, target, match[1] == "s")
    if is_float(target):
        return _to_float(source, target, match[3] == "s")
    return _integer(source, target, match[3] == "s")


_FLOAT = r"b?f(16|32)"
_INTEGER = r"i(1|8|16|32|64)"
_MODE = r"(\.r[te][ezpn])?"
FAMILIES = (
    Family(rf"air\.convert\.[su]\.{_INTEGER}{_MODE}\.f\.{_FLOAT}", "exact", _convert),
    Family(rf"air\.convert\.[su]\.(v\d)?{_INTEGER}\.[su]\.(v\d)?{_INTEGER}", "exact", _convert),
    Family(rf"air\.convert\.f\.{_FLOAT}{_MODE}\.[fsu]\.({_FLOAT}|{_INTEGER})", "ieee", _convert),
)
