"""What the dynamic linker tells a process about its libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scanner.sim.libraries import Loaded
from scanner.sim.machine.cpu import Cpu, Handler

__all__ = ["imports"]


def imports(libraries: Sequence[Loaded], allocate: Callable[[int], int]) -> dict[str, Handler]:
    """Handlers by import name."""
    places: dict[str, int] = {}

    def unwind(cpu: Cpu) -> None:
        address = cpu.x(0)
        for library in libraries:
            if library.base <= address < library.base + library.size:
                frames = library.section("__TEXT", "__eh_frame")
                compact = library.section("__TEXT", "__unwind_info")
                for index, word in enumerate((library.base, *frames, *compact)):
                    cpu.memory.set_u64(cpu.x(1) + 8 * index, word)
                cpu.set_x(0, 1)
                return
        cpu.set_x(0, 0)

    def name(cpu: Cpu) -> None:
        library = libraries[cpu.x(0) & 0xFFFFFFFF].name
        if library not in places:
            raw = f"/torch/lib/{library}".encode() + b"\0"
            places[library] = allocate(len(raw))
            cpu.memory.write(places[library], raw)
        cpu.set_x(0, places[library])

    def section_data(cpu: Cpu) -> None:
        memory = cpu.memory
        wanted = (memory.text(cpu.x(1)), memory.text(cpu.x(2)))
        found = [library for library in libraries if library.base == cpu.x(0)]
        address, size = found[0].section(*wanted) if found else (0, 0)
        if size:
            memory.set_u64(cpu.x(3), size)
        cpu.set_x(0, address)

    return {
        "__dyld_find_unwind_sections": unwind,
        "__dyld_image_count": lambda cpu: cpu.set_x(0, len(libraries)),
        "__dyld_get_image_name": name,
        "__dyld_get_image_header": lambda cpu: cpu.set_x(0, libraries[cpu.x(0) & 0xFFFFFFFF].base),
        "_getsectiondata": section_data,
    }
