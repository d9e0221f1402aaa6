"""MPSDataType and other numbers of Metal's headers."""

from __future__ import annotations

__all__ = ["CODES", "ITEM_SIZES", "dtype_code", "dtype_name"]

_FLOAT = 0x10000000
_COMPLEX = 0x11000000
_SIGNED = 0x20000000
_ALTERNATE = 0x80000000

CODES: dict[str, int] = {
    "float32": _FLOAT | 32,
    "float16": _FLOAT | 16,
    "bfloat16": _ALTERNATE | _FLOAT | 16,
    "complex64": _COMPLEX | 64,
    "complex32": _COMPLEX | 32,
    "int8": _SIGNED | 8,
    "int16": _SIGNED | 16,
    "int32": _SIGNED | 32,
    "int64": _SIGNED | 64,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "bool": _ALTERNATE | 8,
}
"""Torch's name → MPSDataType, from `MPSCoreTypes.h`."""

_NAMES = {code: name for name, code in CODES.items()}

ITEM_SIZES: dict[str, int] = {
    name: 1 if name == "bool" else (code & 0xFF) // 8 for name, code in CODES.items()
}


def dtype_name(code: int) -> str:
    """Torch's name of an MPSDataType; empty for 0 and for types that torch lacks."""
    return _NAMES.get(code & 0xFFFFFFFF, "")


def dtype_code(name: str) -> int:
    """MPSDataType of a torch name; 0 for an empty one."""
    return CODES.get(name, 0)
