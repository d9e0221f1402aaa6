"""A machine of a few regions, and a way to send messages to imitated objects."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scanner.sim.executors import Answer, Done, KernelSource, Launch, PipelineLimits
from scanner.sim.gpu import Gpu
from scanner.sim.graph import recording
from scanner.sim.libraries import BundledLibrary
from scanner.sim.machine.cpu import Cpu
from scanner.sim.machine.imports import Imports
from scanner.sim.machine.memory import Memory, Region
from scanner.sim.metal import install as metal
from scanner.sim.metal.context import Context
from scanner.sim.metal.recorder import Recorder
from scanner.sim.metal.storage import heap_region
from scanner.sim.objc import foundation
from scanner.sim.objc.runtime import Runtime
from scanner.sim.shaders.functions.interface import Direction

RETURN = 0xD65F03C0
ADD_X0_X0_X1 = 0x8B010000
BRANCH_TO_SELF = 0x14000000
LOAD_X0_FROM_X0 = 0xF9400000
JUMP_TO_LITERAL = (0x58000050, 0xD61F0200)
"""ldr x16, 8 bytes ahead; br x16. An address follows."""


@dataclass
class Bench:
    """Code, data and stubs, with the CPU that sees them."""

    memory: Memory
    code: Region
    data: Region
    device: Region
    imports: Imports
    cpu: Cpu
    _next: int = 0
    _at: int = 0

    def assemble(self, *words: int) -> int:
        """Puts instructions into memory; returns their address."""
        address = self.code.start + self._next
        self.memory.write(address, struct.pack(f"<{len(words)}I", *words))
        self._next += 4 * len(words) + 4096
        return address

    def call_import(self, name: str) -> int:
        """Code that jumps to an imported function."""
        stub = self.imports.resolve(name)
        self.cpu.names[stub] = name
        return self.assemble(*JUMP_TO_LITERAL, stub & 0xFFFFFFFF, stub >> 32)

    def put(self, data: bytes) -> int:
        """Address of a copy of bytes in the data region."""
        self._at = (self._at + 15) & ~15
        address = self.data.start + 0x8000 + self._at
        self.memory.write(address, data)
        self._at += len(data)
        return address

    def text(self, text: str) -> int:
        """Address of a C string."""
        return self.put(text.encode() + b"\0")

    def words(self, *values: int) -> int:
        """Address of 64-bit words."""
        return self.put(struct.pack(f"<{len(values)}Q", *[v % (1 << 64) for v in values]))

    def serve(self, handler: Any, *arguments: int) -> int:
        """Calls a handler with integer arguments; returns x0."""
        self.arguments(*arguments)
        handler(self.cpu)
        return self.cpu.x(0)

    def arguments(self, *arguments: int) -> None:
        """Sets registers and, from the ninth on, the stack."""
        for index, value in enumerate(arguments[:8]):
            self.cpu.set_x(index, value)
        stack = self.data.start + 0x4000
        self.cpu.set_sp(stack)
        for index, value in enumerate(arguments[8:]):
            self.memory.set_u64(stack + 8 * index, value)


def new_bench() -> Bench:
    """A bench whose memory goes with it."""
    memory = Memory()
    stubs = memory.add(0x1000_0000, 0x10000, "stubs")
    code = memory.add(0x2000_0000, 0x10000, "code")
    data = memory.add(0x3000_0000, 0x40000, "data")
    stack = memory.add(0x4000_0000, 0x40000, "stack")
    imported = memory.add(0x5000_0000, 0x40000, "imported")
    device = memory.add_shared(0x400000, "device", 0)
    imports = Imports(memory, stubs, imported)
    return Bench(memory, code, data, device, imports, Cpu(memory, stubs, stack))


@dataclass
class Recorded:
    """Executors that keep what they are given and do it, or not."""

    direction: Direction = "nearest"
    answer: Answer = field(default_factory=Done)
    limit: PipelineLimits = field(default_factory=PipelineLimits)
    inferred: recording.TensorType | None = None
    launches: list[Launch] = field(default_factory=list)
    graphs: list[recording.GraphRun] = field(default_factory=list)
    kernels: list[recording.KernelRun] = field(default_factory=list)

    def close(self) -> None:
        """Holds nothing."""

    def limits(self, kernel: KernelSource) -> PipelineLimits:
        """As given."""
        return self.limit

    def run(self, work: Any) -> Answer:
        """Keeps it."""
        kept: list[Any] = self.launches if isinstance(work, Launch) else self.graphs
        kept.append(work)
        return self.answer

    def run_kernel(self, run: recording.KernelRun) -> Answer:
        """Keeps it."""
        self.kernels.append(run)
        return self.answer

    def infer(self, graph: recording.Graph, value: int) -> recording.TensorType | None:
        """As given."""
        return self.inferred


@dataclass
class Objects:
    """The imitated system on a bench."""

    bench: Bench
    runtime: Runtime
    context: Context
    recorder: Recorder
    executor: Recorded

    def send(
        self, receiver: Any, selector: str, *arguments: Any, floats: Sequence[float] = ()
    ) -> Any:
        """Sends a message; returns the object that x0 holds, or its number."""
        self.send_raw(receiver, selector, *arguments, floats=floats)
        word = self.bench.cpu.x(0)
        found = word and self.runtime.is_object(word)
        return self.runtime.find(word) if found else word

    def send_raw(
        self, receiver: Any, selector: str, *arguments: Any, floats: Sequence[float] = ()
    ) -> int:
        """Sends a message; returns x0."""
        words = [self._word(receiver), self.bench.text(selector), *map(self._word, arguments)]
        for index, value in enumerate(floats):
            self.bench.cpu.set_d(index, value)
        return self.bench.serve(self.runtime.imports()["_objc_msgSend"], *words)

    def array(self, *values: int) -> Any:
        """An NSArray of NSNumbers."""
        numbers = [self.send("NSNumber", "numberWithInteger:", value) for value in values]
        return self.objects(*numbers)

    def objects(self, *items: Any) -> Any:
        """An NSArray of objects."""
        place = self.bench.words(*[item.address for item in items])
        return self.send("NSArray", "arrayWithObjects:count:", place, len(items))

    def _word(self, value: Any) -> int:
        if isinstance(value, str):
            return self.runtime.class_named(value).address
        if value is None:
            return 0
        return value if isinstance(value, int) else int(value.address)


def new_objects(libraries: tuple[BundledLibrary, ...] = ()) -> Objects:
    """The imitated system: macOS 15.5 on an M2."""
    bench = new_bench()
    runtime = Runtime(bench.memory, bench.imports.data, bench.imports.allocate)
    executor = Recorded()
    recorder = Recorder(executor, executor)
    memory = heap_region(bench.device)
    context = Context(bench.cpu, runtime, recorder, memory, Gpu(), (15, 5), libraries)
    foundation.install(runtime, (15, 5))
    metal.install(context)
    return Objects(bench, runtime, context, recorder, executor)
