"""A process: libraries in memory, and everything that serves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scanner.sim.executors import GraphExecutor, ShaderExecutor
from scanner.sim.gpu import Gpu
from scanner.sim.libraries import BundledLibrary, Loaded
from scanner.sim.machine.cpu import Cpu
from scanner.sim.machine.imports import Imports
from scanner.sim.machine.memory import Memory, Region
from scanner.sim.metal import install as metal
from scanner.sim.metal.context import Context
from scanner.sim.metal.recorder import Recorder
from scanner.sim.metal.storage import heap_region
from scanner.sim.objc import foundation
from scanner.sim.objc.compiled import compiled_classes
from scanner.sim.objc.runtime import Runtime
from scanner.sim.osenv import accelerate, ctype, dyld, hardware, libc, libm, stdio

__all__ = ["Machine", "Services", "Space", "serve"]

_STUBS = (0x7_0000_0000, 1 << 20)
_DATA = (0x7_1000_0000, 64 << 20)
_STACK = (0x7_8000_0000, 64 << 20)
_HEAP = (0x8_0000_0000, 4 << 30)
_DEVICE = (0x20_0000_0000, 6 << 30)


@dataclass
class Space:
    """The regions of a process that are not libraries."""

    memory: Memory
    stubs: Region
    data: Region
    stack: Region
    heap: Region
    device: Region

    @classmethod
    def new(cls, memory: Memory, files: Mapping[str, Path] | None = None) -> Space:
        """Maps the regions; `files` hold the first content of some of them, by name."""
        files = files or {}

        def add(name: str, place: tuple[int, int]) -> Region:
            return memory.add(*place, name, files.get(name))

        return cls(
            memory,
            add("stubs", _STUBS),
            add("data", _DATA),
            add("stack", _STACK),
            add("heap", _HEAP),
            memory.add_shared(_DEVICE[1], "device", _DEVICE[0]),
        )


@dataclass
class Machine:
    """A CPU with the memory and the imports of its process."""

    space: Space
    cpu: Cpu
    imports: Imports


@dataclass
class Services:
    """Everything that answers emulated code, with its state."""

    console: stdio.Console
    runtime: Runtime
    recorder: Recorder
    context: Context


def serve(
    machine: Machine,
    libraries: Sequence[Loaded],
    bundled: tuple[BundledLibrary, ...],
    macos: tuple[int, int],
    gpu: Gpu,
    shaders: ShaderExecutor,
    graphs: GraphExecutor,
    environment: Mapping[str, str] | None = None,
) -> Services:
    """Puts new services in charge of a machine; `environment` is what `getenv` knows."""
    cpu, imports = machine.cpu, machine.imports
    console = stdio.Console()
    runtime = Runtime(machine.space.memory, imports.data, imports.allocate)
    recorder = Recorder(shaders, graphs)
    memory = heap_region(machine.space.device)
    context = Context(cpu, runtime, recorder, memory, gpu, macos, bundled)
    foundation.install(runtime, macos)
    for address, kind in compiled_classes(machine.space.memory, libraries):
        runtime.define_at(kind, address)
    cpu.handlers = {
        **libc.imports(console, dict(environment or {}), imports.allocate),
        **libm.imports(),
        **dyld.imports(libraries, imports.allocate),
        **hardware.imports(gpu, macos),
        **accelerate.imports(imports.functions, recorder.routines.append),
        **runtime.imports(),
        **metal.install(context),
        **_observers(recorder),
    }
    cpu.names = {address: name for name, address in imports.functions.items()}
    return Services(console, runtime, recorder, context)


def fill_data(machine: Machine) -> None:
    """Gives imported data their content."""
    memory, data = machine.space.memory, machine.imports.data
    for name, value in (("_vm_page_size", 0x4000), ("_mach_task_self_", 0x103)):
        if name in data:
            memory.set_u64(data[name], value)
    if "__DefaultRuneLocale" in data:
        memory.write(data["__DefaultRuneLocale"] + ctype.TABLES_AT, ctype.tables())


def _observers(recorder: Recorder) -> dict[str, Callable[[Cpu], None]]:
    def enter(cpu: Cpu) -> None:
        name, overload = cpu.memory.text(cpu.x(0)), cpu.memory.text(cpu.x(1))
        recorder.enter(f"{name}.{overload}" if overload else name)

    def leave(_cpu: Cpu) -> None:
        recorder.leave()

    return {
        "_opscan_enter": enter,
        "_opscan_leave": leave,
        "_opscan_warning": lambda cpu: recorder.warnings.append(cpu.memory.text(cpu.x(0))),
    }
