"""Assembles the few arm64 instructions that the tests need, and plays a library made of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

BASE = 0x10000
RET, NOP, BRK, BLR_X8 = 0xD65F03C0, 0xD503201F, 0xD4200000, 0xD63F0100


def bl(here: int, target: int) -> int:
    """Call `target` from address `here`."""
    return 0x94000000 | ((target - here) >> 2 & 0x3FFFFFF)


def b(here: int, target: int) -> int:
    """Jump."""
    return 0x14000000 | ((target - here) >> 2 & 0x3FFFFFF)


def cbz_x0(here: int, target: int) -> int:
    """Jump when `x0` is zero."""
    return 0xB4000000 | ((target - here) >> 2 & 0x7FFFF) << 5


def adrp(here: int, register: int, target: int) -> int:
    """Page of `target` into a register."""
    pages = (target >> 12) - (here >> 12)
    return 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register


def add(register: int, source: int, value: int) -> int:
    """`source` plus a small number into a register."""
    return 0x91000000 | value << 10 | source << 5 | register


def mov(register: int, source: int) -> int:
    """Copy a register."""
    return 0xAA0003E0 | source << 16 | register


def str_sp(register: int, offset: int = 0) -> int:
    """Store a register on the stack."""
    return 0xF90003E0 | (offset // 8) << 10 | register


def stp_sp(first: int, second: int) -> int:
    """Store two registers on the stack."""
    return 0xA90003E0 | second << 10 | first


def ldr(register: int, base: int) -> int:
    """Load a register from where another points."""
    return 0xF9400000 | base << 5 | register


class Library:
    """Stands in for `opdb.build.macho.Image`: functions by name, strings, imported symbols."""

    def __init__(
        self,
        functions: Mapping[str, list[int]],
        strings: Mapping[int, str] | None = None,
        imports: Mapping[int, str] | None = None,
    ) -> None:
        self._code, self._ends = b"", {}
        self._strings, self._imports = dict(strings or {}), dict(imports or {})
        self.symbols: dict[int, str] = {}
        for name, code in functions.items():
            start = BASE + len(self._code)
            self._code += struct.pack(f"<{len(code)}I", *code)
            self.symbols[start] = name
            self._ends[start] = BASE + len(self._code)

    def read(self, start: int, end: int) -> bytes:
        return self._code[start - BASE : end - BASE]

    def end(self, start: int) -> int:
        return self._ends[start]

    def section(self, address: int) -> str:
        return "__text" if BASE <= address < BASE + len(self._code) else ""

    def cstring(self, address: int) -> str:
        return self._strings.get(address, "")

    def symbol(self, address: int) -> str:
        return self.symbols.get(address) or self._imports.get(address, "")
