"""Linear sweep over a function's arm64 code, following the constants that registers hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import capstone  # type: ignore[import-untyped]

from opdb.build.macho import Image

__all__ = ["Call", "calls", "disassemble"]

_CALLER_SAVED = tuple(f"x{n}" for n in range(18))


class Call(NamedTuple):
    """A call met by the sweep."""

    target: int
    registers: dict[str, int]
    """Constants known in argument registers."""
    stored: tuple[int, ...]
    """Constants written to memory since the call before."""


def disassemble(image: Image, start: int, end: int) -> Iterator[tuple[int, int, str, str]]:
    """Instructions as (address, size, mnemonic, operands)."""
    yield from _engine().disasm_lite(image.read(start, end), start)


@cache
def _engine() -> capstone.Cs:
    engine = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    engine.skipdata = True  # goes on after data between instructions
    return engine


def calls(image: Image, start: int) -> Iterator[Call]:
    """Every call of the function at `start`, in address order, branches ignored.

    Registration code is straight-line, so the last value written to a register is the one passed.
    """
    end = image.end(start)
    registers: dict[str, int] = {}
    stored: list[int] = []
    for _, _, mnemonic, operands in disassemble(image, start, end):
        if mnemonic == "bl" or (mnemonic == "b" and not start <= _immediate(operands) < end):
            yield Call(_immediate(operands), dict(registers), tuple(stored))
            stored.clear()
            for name in _CALLER_SAVED:
                registers.pop(name, None)
        elif mnemonic.startswith("st"):
            stored += [
                registers[name]
                for name in operands.partition("[")[0].split(", ")
                if name in registers
            ]
        else:
            _step(registers, mnemonic, operands.split(", "))


def _immediate(operand: str) -> int:
    return int(operand.lstrip("#"), 0)


def _step(registers: dict[str, int], mnemonic: str, operands: list[str]) -> None:
    """Applies one instruction that is neither a call nor a store."""
    target = operands[0].replace("w", "x", 1)
    value: int | None = None
    if mnemonic in ("adrp", "adr") or (mnemonic == "mov" and operands[1].startswith("#")):
        value = _immediate(operands[1])
    elif mnemonic == "mov":
        value = registers.get(operands[1])
    elif mnemonic == "add" and len(operands) == 3 and operands[2].startswith("#"):
        base = registers.get(operands[1])
        value = None if base is None else base + _immediate(operands[2])
    if value is not None:
        registers[target] = value
        return
    if mnemonic.startswith(("cmp", "cmn", "tst", "b", "cb", "tb", "nop", "ret")):
        return
    registers.pop(target, None)
    if mnemonic.startswith("ldp") and len(operands) > 1:
        registers.pop(operands[1].replace("w", "x", 1), None)
