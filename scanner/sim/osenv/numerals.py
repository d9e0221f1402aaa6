"""Numbers in text."""

from __future__ import annotations

import re

from scanner.sim.machine.cpu import Cpu, Handler

__all__ = ["imports"]

_INTEGER = re.compile(r"\s*[-+]?(0[xX])?[0-9a-zA-Z]+")
_DECIMAL = re.compile(
    r"\s*[-+]?(inf(inity)?|nan|(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?)", re.IGNORECASE
)


def imports() -> dict[str, Handler]:
    """Handlers by import name."""
    found: dict[str, Handler] = dict.fromkeys(
        ("_strtol", "_strtoll", "_strtoul", "_strtoull"), _integer
    )
    found |= dict.fromkeys(("_strtod", "_strtod_l", "_strtold_l"), _double)
    found |= dict.fromkeys(("_strtof", "_strtof_l"), _single)

    def atof(cpu: Cpu) -> None:
        cpu.set_x(1, 0)
        _double(cpu)

    def atoi(cpu: Cpu) -> None:
        cpu.set_x(1, 0)
        cpu.set_x(2, 10)
        _integer(cpu)

    return found | {"_atof": atof, "_atoi": atoi, "_atoll": atoi}


def _integer(cpu: Cpu) -> None:
    text = cpu.memory.text(cpu.x(0))
    base = cpu.x(2) & 0xFF
    found = _INTEGER.match(text)
    length = found.end() if found else 0
    value = 0
    while length:
        try:
            value = int(text[:length], base)
            break
        except ValueError:
            length -= 1
    if cpu.x(1):
        cpu.memory.set_u64(cpu.x(1), cpu.x(0) + length)
    cpu.set_x(0, value)


def _decimal(cpu: Cpu) -> float:
    text = cpu.memory.text(cpu.x(0))
    found = _DECIMAL.match(text)
    if cpu.x(1):
        cpu.memory.set_u64(cpu.x(1), cpu.x(0) + (found.end() if found else 0))
    return float(found.group()) if found else 0.0


def _double(cpu: Cpu) -> None:
    cpu.set_d(0, _decimal(cpu))


def _single(cpu: Cpu) -> None:
    cpu.set_s(0, _decimal(cpu))
