"""Standard streams and formatted output."""

from __future__ import annotations

from scanner.sim.machine.cpu import Cpu, Handler
from scanner.sim.osenv.printf import Arguments, formatted, stack_arguments

__all__ = ["Console", "imports"]


class Console:
    """What emulated code wrote to its standard streams, at most the last few kilobytes."""

    def __init__(self, limit: int = 1 << 16) -> None:
        self.text = ""
        self._limit = limit

    def write(self, text: str) -> None:
        """Appends."""
        self.text = (self.text + text)[-self._limit :]


def imports(console: Console) -> dict[str, Handler]:
    """Handlers by import name."""

    def fwrite(cpu: Cpu) -> None:
        count = cpu.x(2)
        console.write(cpu.memory.read(cpu.x(0), cpu.x(1) * count).decode(errors="replace"))
        cpu.set_x(0, count)

    def write(cpu: Cpu) -> None:
        console.write(cpu.memory.read(cpu.x(1), cpu.x(2)).decode(errors="replace"))
        cpu.set_x(0, cpu.x(2))

    def fputc(cpu: Cpu) -> None:
        console.write(chr(cpu.x(0) & 0xFF))

    def fprintf(cpu: Cpu) -> None:
        console.write(formatted(cpu.memory.text(cpu.x(1)), stack_arguments(cpu)))

    def printf(cpu: Cpu) -> None:
        console.write(formatted(cpu.memory.text(cpu.x(0)), stack_arguments(cpu)))

    def vfprintf(cpu: Cpu) -> None:
        console.write(formatted(cpu.memory.text(cpu.x(1)), Arguments(cpu, cpu.x(2))))

    return {
        "_fwrite": fwrite,
        "_write": write,
        "_fputc": fputc,
        "_putc": fputc,
        "_fprintf": fprintf,
        "_printf": printf,
        "_vfprintf": vfprintf,
        "_snprintf": lambda cpu: _print(cpu, cpu.x(1), cpu.x(2), stack_arguments(cpu)),
        "_snprintf_l": lambda cpu: _print(cpu, cpu.x(1), cpu.x(3), stack_arguments(cpu)),
        "_sprintf": lambda cpu: _print(cpu, 1 << 20, cpu.x(1), stack_arguments(cpu)),
        "___sprintf_chk": lambda cpu: _print(cpu, cpu.x(2), cpu.x(3), stack_arguments(cpu)),
        "___snprintf_chk": lambda cpu: _print(cpu, cpu.x(1), cpu.x(4), stack_arguments(cpu)),
        "_vsnprintf": lambda cpu: _print(cpu, cpu.x(1), cpu.x(2), Arguments(cpu, cpu.x(3))),
    }


def _print(cpu: Cpu, room: int, text: int, arguments: Arguments) -> None:
    raw = formatted(cpu.memory.text(text), arguments).encode()
    if room:
        cpu.memory.write(cpu.x(0), raw[: room - 1] + b"\0")
    cpu.set_x(0, len(raw))
