"""An arm64 CPU that runs emulated functions and serves their imports.

The only module that imports unicorn.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import unicorn
from unicorn import arm64_const as arm

from scanner.sim.machine.budget import Budget
from scanner.sim.machine.faults import BudgetSpent, Fault, MissingImport
from scanner.sim.machine.memory import BadAddress, Memory, Region

__all__ = ["DEFAULT_BLOCKS", "Cpu", "Handler"]

_MASK = 0xFFFFFFFFFFFFFFFF
_X = [arm.UC_ARM64_REG_X0 + i for i in range(29)] + [arm.UC_ARM64_REG_X29, arm.UC_ARM64_REG_X30]
_D = [arm.UC_ARM64_REG_D0 + i for i in range(32)]
# Not the program counter: writing it in a hook would run the hooked instruction once more.
_SAVED = [*_X, arm.UC_ARM64_REG_SP]
_STUB_SIZE = 16
_RED_ZONE = 0x1000
DEFAULT_BLOCKS = 1_000_000_000
"""About ten seconds."""

Handler = Callable[["Cpu"], None]
"""Serves one import: reads arguments and sets the result through the CPU's registers."""


class Cpu:
    """One emulated core.

    `stubs` is a region of return instructions; an import is a slot in it. When the core reaches
    a slot, the import's handler runs and the core returns to the caller.
    """

    def __init__(self, memory: Memory, stubs: Region, stack: Region) -> None:
        self.memory = memory
        self.names: dict[int, str] = {}
        """Stub address → import name."""
        self.handlers: dict[str, Handler] = {}
        self.blocks = DEFAULT_BLOCKS
        """How many basic blocks one call from outside may run."""
        self._stubs = stubs
        self._exit = stubs.end - _STUB_SIZE
        self._top = stack.end - 0x10000
        self._depth = 0
        self._pending: BaseException | None = None
        make: Any = unicorn.Uc  # type: ignore[attr-defined]
        self._uc = make(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self._uc.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
        self._budget = Budget(self._uc)
        for region in memory.regions:
            self.map(region)
        self._uc.hook_add(unicorn.UC_HOOK_CODE, self._on_stub, begin=stubs.start, end=stubs.end - 1)

    def map(self, region: Region) -> None:
        """Makes a region visible to the core."""
        self._uc.mem_map_ptr(region.start, region.size, unicorn.UC_PROT_ALL, region.host)

    def watch(self, address: int, seen: Callable[[], None]) -> None:
        """Calls `seen` whenever the instruction at an address is about to run."""

        def on_code(_uc: Any, _address: int, _size: int, _data: Any) -> None:
            self._guard(seen)

        self._uc.hook_add(unicorn.UC_HOOK_CODE, on_code, begin=address, end=address)

    def x(self, index: int) -> int:
        """General register as an unsigned 64-bit number."""
        return int(self._uc.reg_read(_X[index]))

    def set_x(self, index: int, value: int) -> None:
        """Writes a general register, modulo 2^64."""
        self._uc.reg_write(_X[index], value & _MASK)

    @property
    def sp(self) -> int:
        """Stack pointer: on entry of a handler, the first stack argument."""
        return int(self._uc.reg_read(arm.UC_ARM64_REG_SP))

    def set_sp(self, address: int) -> None:
        """Moves the stack pointer."""
        self._uc.reg_write(arm.UC_ARM64_REG_SP, address)

    def d(self, index: int) -> float:
        """Double in a vector register."""
        return float(struct.unpack("<d", struct.pack("<Q", self._uc.reg_read(_D[index])))[0])

    def set_d(self, index: int, value: float) -> None:
        """Writes a double to a vector register."""
        self._uc.reg_write(_D[index], struct.unpack("<Q", struct.pack("<d", value))[0])

    def s(self, index: int) -> float:
        """Float in a vector register."""
        word = self._uc.reg_read(_D[index]) & 0xFFFFFFFF
        return float(struct.unpack("<f", struct.pack("<I", word))[0])

    def set_s(self, index: int, value: float) -> None:
        """Writes a float (rounded to nearest) to a vector register."""
        self._uc.reg_write(_D[index], _float_bits(value))

    def call(self, address: int, arguments: Sequence[int] = ()) -> int:
        """Runs a function with integer arguments and returns x0.

        Raises `Fault` or one of its kinds when it cannot be run to its end; the process is then
        in an undefined state. May be called from a handler.
        """
        saved = [self._uc.reg_read(register) for register in _SAVED] if self._depth else []
        top = (self.sp - _RED_ZONE) & ~15 if self._depth else self._top
        if not self._depth:
            self._budget.refill(self.blocks)
        self._depth += 1
        try:
            self._enter(top, arguments)
            self._run(address)
            return self.x(0)
        finally:
            self._depth -= 1
            for register, value in zip(_SAVED, saved, strict=False):
                self._uc.reg_write(register, value)

    def caller(self) -> int:
        """Return address of the function that is being served."""
        return self.x(30)

    def frames(self, limit: int = 20) -> list[int]:
        """Return addresses up the stack, innermost first."""
        found = [int(self._uc.reg_read(arm.UC_ARM64_REG_PC)), self.x(30)]
        frame = self.x(29)
        for _ in range(limit):
            try:
                frame, back = self.memory.words(frame, 2)
            except BadAddress:
                break
            if not back:
                break
            found.append(back)
        return found

    def _enter(self, top: int, arguments: Sequence[int]) -> None:
        spilled = arguments[8:]
        top -= (8 * len(spilled) + 15) & ~15
        for index, value in enumerate(spilled):
            self.memory.set_u64(top + 8 * index, value)
        for index, value in enumerate(arguments[:8]):
            self.set_x(index, value)
        self.set_x(29, 0)
        self.set_x(30, self._exit)
        self._uc.reg_write(arm.UC_ARM64_REG_SP, top)

    def _run(self, address: int) -> None:
        self._pending = None
        try:
            self._uc.emu_start(address, self._exit)
        except unicorn.UcError as error:  # type: ignore[attr-defined]
            self._raise_pending()
            raise Fault(f"{error} in emulated code", frames=self.frames()) from None
        self._raise_pending()
        if self._budget.spent:
            reason = f"emulated code did not return within {self.blocks} basic blocks"
            raise BudgetSpent(reason, frames=self.frames())
        if self._uc.reg_read(arm.UC_ARM64_REG_PC) != self._exit:
            raise Fault("emulated code stopped early", frames=self.frames())

    def _raise_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            if isinstance(pending, Fault) and not pending.frames:
                pending.frames = self.frames()
            raise pending

    def _on_stub(self, _uc: Any, address: int, _size: int, _data: Any) -> None:
        if address != self._exit:
            self._guard(lambda: self._serve(address))

    def _serve(self, address: int) -> None:
        name = self.names.get(address, f"stub {address:#x}")
        handler = self.handlers.get(name)
        if handler is None:
            raise MissingImport(name)
        handler(self)

    def _guard(self, action: Callable[[], None]) -> None:
        """Runs a hook's action; an exception must not cross emulated frames."""
        try:
            action()
        except BadAddress as error:
            self._stop(Fault(str(error)))
        except BaseException as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        if self._pending is None:
            self._pending = error
        self._uc.emu_stop()


def _float_bits(value: float) -> int:
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000
