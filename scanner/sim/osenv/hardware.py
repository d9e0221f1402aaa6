"""The machine that emulated code believes to run on."""

from __future__ import annotations

import struct

from scanner.sim.gpu import Gpu
from scanner.sim.machine.cpu import Cpu, Handler

__all__ = ["imports"]


def imports(gpu: Gpu, macos: tuple[int, int]) -> dict[str, Handler]:
    """IOKit as far as the number of GPU cores is read from it, and sysctl."""

    def number(cpu: Cpu) -> None:
        cpu.memory.write(cpu.x(2), struct.pack("<i", gpu.cores))
        cpu.set_x(0, 1)

    def iterate(cpu: Cpu) -> None:
        cpu.set_x(0, 1)

    return {
        "_IOServiceMatching": lambda cpu: cpu.set_x(0, 1),
        "_IOServiceGetMatchingServices": lambda cpu: cpu.set_x(0, 0),
        "_IOIteratorNext": iterate,
        "_IORegistryEntryCreateCFProperty": iterate,
        "_IOObjectRelease": lambda cpu: cpu.set_x(0, 0),
        "_IORegistryEntryFromPath": lambda cpu: cpu.set_x(0, 0),
        "_CFNumberGetValue": number,
        "_sysctlbyname": _sysctl(gpu, macos),
    }


def _sysctl(gpu: Gpu, macos: tuple[int, int]) -> Handler:
    numbers = {"hw.memsize": gpu.memory, "hw.pagesize": 16384, "hw.cachelinesize": 128}
    numbers |= dict.fromkeys(("hw.ncpu", "hw.physicalcpu", "hw.logicalcpu"), 8)
    texts = {
        "kern.osproductversion": f"{macos[0]}.{macos[1]}",
        "machdep.cpu.brand_string": gpu.name,
        "hw.machine": "arm64",
    }

    def serve(cpu: Cpu) -> None:
        name = cpu.memory.text(cpu.x(0))
        if name in texts:
            raw = texts[name].encode() + b"\0"
        elif name in numbers:
            raw = numbers[name].to_bytes(8, "little")
        else:
            cpu.set_x(0, -1)
            return
        if cpu.x(1):
            raw = raw[: cpu.memory.u64(cpu.x(2))]
            cpu.memory.write(cpu.x(1), raw)
        if cpu.x(2):
            cpu.memory.set_u64(cpu.x(2), len(raw))
        cpu.set_x(0, 0)

    return serve
