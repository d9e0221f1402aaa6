"""Times and sizes in words, the same wherever they are told."""

from __future__ import annotations

__all__ = ["bytes_text", "seconds_text"]

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


def seconds_text(seconds: float) -> str:
    """`12.3 µs`: three digits in the largest unit of which there is at least one."""
    return _scaled(seconds, _TIMES)


def bytes_text(count: int) -> str:
    """`1.05 MB`, in powers of ten."""
    return _scaled(float(count), _SIZES)


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    size, name = next((unit for unit in units if value >= unit[0]), units[-1])
    scaled = value / size
    digits = 0 if scaled >= 100 else 1 if scaled >= 10 else 2
    text = f"{scaled:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {name}"
