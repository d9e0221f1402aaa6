"""The numbers that schemas and compiled code have for dtypes, layouts and memory formats."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["DTYPES", "LAYOUTS", "MEMORY_FORMATS", "QUANTIZED", "name_of"]

DTYPES: Mapping[str, int] = MappingProxyType(
    {
        "uint8": 0,
        "int8": 1,
        "int16": 2,
        "int32": 3,
        "int64": 4,
        "float16": 5,
        "float32": 6,
        "float64": 7,
        "complex32": 8,
        "complex64": 9,
        "complex128": 10,
        "bool": 11,
        "bfloat16": 15,
        "float8_e5m2": 23,
        "float8_e4m3fn": 24,
        "float8_e5m2fnuz": 25,
        "float8_e4m3fnuz": 26,
        "uint16": 27,
        "uint32": 28,
        "uint64": 29,
    }
)
"""c10::ScalarType; the numbers are part of the saved-model format and do not change."""
QUANTIZED: Mapping[str, int] = MappingProxyType({"qint8": 12, "quint8": 13, "qint32": 14})
LAYOUTS: Mapping[str, int] = MappingProxyType(
    {
        "strided": 0,
        "sparse_coo": 1,
        "sparse_csr": 2,
        "_mkldnn": 3,
        "sparse_csc": 4,
        "sparse_bsr": 5,
        "sparse_bsc": 6,
        "jagged": 7,
    }
)
"""c10::Layout."""
MEMORY_FORMATS: Mapping[str, int] = MappingProxyType(
    {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
)
"""c10::MemoryFormat."""

_NAMES: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        "ScalarType": {code: name for name, code in {**DTYPES, **QUANTIZED}.items()},
        "Layout": {code: name for name, code in LAYOUTS.items()},
        "MemoryFormat": {code: name for name, code in MEMORY_FORMATS.items()},
    }
)


def name_of(kind: str, value: int) -> str | None:
    """What torch calls a number of a schema type (`ScalarType`, `Layout`, `MemoryFormat`).

    None for other types, and for numbers that are not known.
    """
    return _NAMES.get(kind, {}).get(value)
