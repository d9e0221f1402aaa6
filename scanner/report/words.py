"""How configurations, places and counts are put into words, the same in every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from scanner.records import Location, Target

__all__ = [
    "bytes_text",
    "clean",
    "count",
    "inputs_text",
    "join",
    "json_escaped",
    "place",
    "seconds_text",
    "short_target",
]

_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex128": "c128",
    "complex64": "c64",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
}
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_MAX_TENSORS = 4


def clean(text: str) -> str:
    """Free of controls, direction marks, line separators and lone surrogates, so that no source
    line can steer the reader's terminal or page."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " "))


def json_escaped(document: str) -> str:
    """JSON that shows no control or direction mark as itself; line ends outside strings stay."""
    return _CONTROL.sub(lambda mark: _escape(mark[0]), document)


def _escape(mark: str) -> str:
    return mark if mark == "\n" else f"\\u{ord(mark):04x}"


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def join(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last


def inputs_text(config: Mapping[str, Any]) -> str:
    """`f32[8,64] x2, i64[8]`: the tensor inputs of a row's config, runs of equal ones once."""
    specs = [_spec(spec) for spec in config.get("inputs", ())]
    if not specs:
        return "no tensors"
    runs = [(text, len(list(run))) for text, run in groupby(specs)]
    shown = [text if number == 1 else f"{text} x{number}" for text, number in runs[:_MAX_TENSORS]]
    hidden = sum(number for _, number in runs[_MAX_TENSORS:])
    return ", ".join(shown) + (f", +{hidden} more" if hidden else "")


def seconds_text(seconds: float) -> str:
    """`1.23 s`, `45.6 ms`, `789 µs`: three digits."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds * 1e6)} µs"


def bytes_text(size: float | None) -> str:
    """`1.50 GiB`, `12.3 MiB`, `456 KiB`; empty for None."""
    if size is None:
        return ""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= factor:
            return f"{_three(size / factor)} {unit}"
    return f"{size:.0f} B"


def _three(value: float) -> str:
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def place(location: Location) -> str:
    """`train.py:12`, and `train.py:12:5` where the column is known."""
    column = f":{location.column}" if location.column else ""
    return clean(f"{location.file}:{location.line}{column}")


def short_target(target: Target) -> str:
    """`torch 2.9.1`, with the machine when it is part of the target."""
    machine = [f"macOS {target.macos}" if target.macos else "", target.chip or ""]
    machine += [f"{target.ram} GiB" if target.ram else "", "fallback on" if target.fallback else ""]
    known = ", ".join(part for part in machine if part)
    return f"{target.framework} {target.version}" + (f" ({known})" if known else "")


def _spec(spec: Mapping[str, Any]) -> str:
    dtype = _DTYPES.get(spec["dtype"], spec["dtype"])
    shape = ",".join(str(size) for size in spec["shape"])
    layout = spec.get("layout", "strided")
    extra = "" if layout == "strided" else f" {layout}"
    host = " on cpu" if spec.get("device") == "cpu" else ""
    return f"{dtype}[{shape}]{extra}{host}"
