"""Types as AIR function names spell them (`v4f32`), and as LLVM does (`<4 x float>`)."""

from __future__ import annotations

import re

__all__ = ["bits", "element", "is_float", "lanes", "llvm_type", "mangled", "vector_of"]

_SCALARS = {
    "f32": "float",
    "f16": "half",
    "bf16": "bfloat",
    "f64": "double",
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
}
_BITS = {"float": 32, "half": 16, "bfloat": 16, "double": 64}
_MANGLED = {v: k for k, v in _SCALARS.items()}
_AIR_VECTOR = re.compile(r"v(\d+)(\w+)$")
_LLVM_VECTOR = re.compile(r"<(\d+) x (\w+)>$")


def llvm_type(air: str) -> str:
    """`v4f32` → `<4 x float>`; raises KeyError for anything that is not a number type."""
    match = _AIR_VECTOR.match(air)
    if match:
        return f"<{match[1]} x {_SCALARS[match[2]]}>"
    return _SCALARS[air]


def lanes(llvm: str) -> int:
    """Elements of a vector type; 0 for a scalar."""
    match = _LLVM_VECTOR.match(llvm)
    return int(match[1]) if match else 0


def element(llvm: str) -> str:
    """The element type of a vector, or the scalar itself."""
    match = _LLVM_VECTOR.match(llvm)
    return match[2] if match else llvm


def vector_of(llvm: str, count: int) -> str:
    """`float`, 4 → `<4 x float>`; 0 leaves a scalar."""
    return f"<{count} x {llvm}>" if count else llvm


def bits(llvm: str) -> int:
    """Width of the element in bits."""
    scalar = element(llvm)
    return _BITS.get(scalar) or int(scalar[1:])


def is_float(llvm: str) -> bool:
    """Whether the element is a floating-point type."""
    return element(llvm) in _BITS


def mangled(llvm: str) -> str:
    """As LLVM's intrinsics spell it: `<4 x float>` → `v4f32`."""
    count = lanes(llvm)
    return (f"v{count}" if count else "") + _MANGLED[element(llvm)]
