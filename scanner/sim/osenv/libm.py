"""Mathematical functions of the C library, computed by the host's."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

from scanner.sim.machine.cpu import Cpu, Handler

__all__ = ["imports"]

_UNARY = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
_BINARY = ["atan2", "copysign", "fmod", "hypot", "nextafter", "pow", "remainder"]
_OTHER: dict[str, Callable[[float], float]] = {
    "cbrt": lambda value: math.copysign(abs(value) ** (1 / 3), value),
    "exp2": lambda value: 2.0**value,
    "lgamma": math.lgamma,
    "tgamma": math.gamma,
    "logb": lambda value: float(math.frexp(value)[1] - 1),
    "rint": lambda value: float(round(value)),
}


def imports() -> dict[str, Handler]:
    """Handlers by import name, for double and float."""
    found: dict[str, Handler] = {}
    unary = {name: getattr(math, name) for name in _UNARY} | _OTHER
    for name, function in unary.items():
        found[f"_{name}"] = _double(function)
        found[f"_{name}f"] = _single(function)
    for name in _BINARY:
        found[f"_{name}"] = _double2(getattr(math, name))
        found[f"_{name}f"] = _single2(getattr(math, name))
    found["___exp10"] = _double(lambda value: 10.0**value)
    found["___sincos_stret"] = _sincos
    found["___sincosf_stret"] = _sincosf
    for name in ("ldexp", "scalbn"):
        found[f"_{name}"] = _scale
        found[f"_{name}f"] = _scalef
    found |= {"_frexp": _frexp, "_frexpf": _frexpf, "_modf": _modf, "_modff": _modff}
    found["_nextafterf"] = _nextafterf
    found |= {"___muldc3": _muldc3, "___mulsc3": _mulsc3}
    return found


def _safe(function: Callable[..., float], *values: float) -> float:
    """C's answers where Python raises: a pole is infinite, a domain error NaN."""
    try:
        return function(*values)
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return math.inf
    except ValueError:
        return _edge(function, values)


def _edge(function: Callable[..., float], values: tuple[float, ...]) -> float:
    if function in (math.log, math.log2, math.log10) and values[0] == 0:
        return -math.inf
    if function is math.log1p and values[0] == -1:
        return -math.inf
    if function is math.atanh and abs(values[0]) == 1:
        return math.copysign(math.inf, values[0])
    if function is math.lgamma:
        return math.inf
    if function is math.pow and values[0] == 0:
        return math.inf
    return math.nan


def _double(function: Callable[[float], float]) -> Handler:
    return lambda cpu: cpu.set_d(0, _safe(function, cpu.d(0)))


def _single(function: Callable[[float], float]) -> Handler:
    return lambda cpu: cpu.set_s(0, _safe(function, cpu.s(0)))


def _double2(function: Callable[[float, float], float]) -> Handler:
    return lambda cpu: cpu.set_d(0, _safe(function, cpu.d(0), cpu.d(1)))


def _single2(function: Callable[[float, float], float]) -> Handler:
    return lambda cpu: cpu.set_s(0, _safe(function, cpu.s(0), cpu.s(1)))


def _nextafterf(cpu: Cpu) -> None:
    import numpy as np

    cpu.set_s(0, float(np.nextafter(np.float32(cpu.s(0)), np.float32(cpu.s(1)))))


def _sincos(cpu: Cpu) -> None:
    value = cpu.d(0)
    cpu.set_d(0, _safe(math.sin, value))
    cpu.set_d(1, _safe(math.cos, value))


def _sincosf(cpu: Cpu) -> None:
    value = cpu.s(0)
    cpu.set_s(0, _safe(math.sin, value))
    cpu.set_s(1, _safe(math.cos, value))


def _exponent(cpu: Cpu) -> int:
    word = cpu.x(0) & 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word


def _scale(cpu: Cpu) -> None:
    cpu.set_d(0, _safe(lambda value: math.ldexp(value, _exponent(cpu)), cpu.d(0)))


def _scalef(cpu: Cpu) -> None:
    cpu.set_s(0, _safe(lambda value: math.ldexp(value, _exponent(cpu)), cpu.s(0)))


def _split(value: float) -> tuple[float, int]:
    return math.frexp(value) if math.isfinite(value) else (value, 0)


def _frexp(cpu: Cpu) -> None:
    fraction, exponent = _split(cpu.d(0))
    cpu.memory.write(cpu.x(0), exponent.to_bytes(4, "little", signed=True))
    cpu.set_d(0, fraction)


def _frexpf(cpu: Cpu) -> None:
    fraction, exponent = _split(cpu.s(0))
    cpu.memory.write(cpu.x(0), exponent.to_bytes(4, "little", signed=True))
    cpu.set_s(0, fraction)


def _modf(cpu: Cpu) -> None:
    import struct

    fraction, whole = math.modf(cpu.d(0))
    cpu.memory.write(cpu.x(0), struct.pack("<d", whole))
    cpu.set_d(0, fraction)


def _modff(cpu: Cpu) -> None:
    import struct

    fraction, whole = math.modf(cpu.s(0))
    cpu.memory.write(cpu.x(0), struct.pack("<f", whole))
    cpu.set_s(0, fraction)


def _product(values: list[float]) -> complex:
    try:
        return complex(values[0], values[1]) * complex(values[2], values[3])
    except OverflowError:
        return cmath.infj


def _muldc3(cpu: Cpu) -> None:
    result = _product([cpu.d(index) for index in range(4)])
    cpu.set_d(0, result.real)
    cpu.set_d(1, result.imag)


def _mulsc3(cpu: Cpu) -> None:
    result = _product([cpu.s(index) for index in range(4)])
    cpu.set_s(0, result.real)
    cpu.set_s(1, result.imag)
