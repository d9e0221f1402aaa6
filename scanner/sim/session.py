"""A running release: tensors go in, operators are called, results and a trace come out."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from scanner.sim import process, trace
from scanner.sim.call import Call, SimTensor
from scanner.sim.catch_all import FALLBACK, enable_fallback
from scanner.sim.entry import ArgumentError, Description, EntryPoints, Raised
from scanner.sim.executors import GraphExecutor, NoGraphs, NoShaders, ShaderExecutor
from scanner.sim.gpu import Gpu
from scanner.sim.machine.cpu import DEFAULT_BLOCKS, Cpu
from scanner.sim.machine.faults import Fault
from scanner.sim.machine.imports import Imports
from scanner.sim.machine.memory import Memory, Region
from scanner.sim.prepare.prepared import Prepared
from scanner.sim.values import Arena, Argument, HostTensor, from_torch
from scanner.sim.watches import Watches

__all__ = ["Session"]

_ARENA = 16 << 20
_HEAP_LIMIT = 1 << 30
_OBJECT_LIMIT = 300_000


class Session:
    """One process of a prepared release.

    Not thread safe; several sessions may live side by side. Memory of results is given back
    when they are garbage collected, and all of it by `restart`. A fault restarts the process, and
    so does a call at a moment when much memory is used and no tensor is held.
    """

    def __init__(
        self,
        prepared: Prepared,
        macos: tuple[int, int] = (15, 5),
        gpu: Gpu | None = None,
        shaders: Callable[[Region], ShaderExecutor] | None = None,
        graphs: GraphExecutor | None = None,
        blocks: int = DEFAULT_BLOCKS,
        fallback: bool = False,
    ) -> None:
        """`shaders` makes an executor that knows the region in which all buffers lie.

        `blocks` is how many basic blocks of emulated code a call may run; `fallback` stands for
        `PYTORCH_ENABLE_MPS_FALLBACK=1`. Raises PrepareError where the snapshot is too old for it.
        """
        self.prepared = prepared
        self.macos = macos
        self.gpu = gpu or Gpu()
        self.fallback = fallback
        self.epoch = 0
        self._memory = Memory()
        self._machine = self._load()
        self._machine.cpu.blocks = blocks
        region = self._machine.space.device
        self.shaders = NoShaders() if shaders is None else shaders(region)
        self._graphs = graphs or NoGraphs()
        self._schemas: dict[str, list[Argument] | None] = {}
        self._alive: weakref.WeakSet[SimTensor] = weakref.WeakSet()
        self._dead: list[tuple[int, int]] = []
        symbols = prepared.manifest.symbols
        self._watches = Watches(
            self._machine.cpu, symbols, lambda: self._services.recorder.fallback()
        )
        self._start()

    def close(self) -> None:
        """Ends the executor and gives all memory back."""
        self.shaders.close()
        self._memory.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def restart(self) -> None:
        """Puts the process back to its snapshot; every tensor is lost."""
        for part in self.prepared.manifest.parts:
            self._memory.restore(self._memory.region(part.start))
        self._memory.discard(self._machine.space.device)
        self.epoch += 1
        self._dead.clear()
        self._watches.restart()
        self._start()

    @property
    def heap_bytes(self) -> int:
        """Size of the emulated heap."""
        used = self._memory.u64(self.prepared.manifest.symbols["_opscan_heap_start"])
        return used - self._machine.space.heap.start

    def schema(self, op: str) -> list[Argument] | None:
        """Arguments of an overload (`aten::add.Tensor`), None when the release has none of it."""
        if op not in self._schemas:
            try:
                self._schemas[op] = self._entries.schema(op)
            except Raised:
                self._schemas[op] = None
        return self._schemas[op]

    def upload(self, source: Any, device: str = "mps", alias: SimTensor | None = None) -> SimTensor:
        """Copies a tensor into the process.

        `source` is a `HostTensor` or a torch tensor; its dtype, shape, stride and storage offset
        are kept. With `alias` it becomes a view of that tensor's storage and its content is not
        copied. Raises Fault when the process cannot make it.
        """
        self._release_dead()
        tensor = source if isinstance(source, HostTensor) else from_torch(source, device)
        try:
            if alias is not None:
                return self.make(self._entries.alias(self.pointer_of(alias), tensor))
            made = self.make(self._entries.tensor(tensor, len(tensor.storage), tensor.wrapped))
        except Raised as error:
            raise Fault(f"no tensor could be made: {error.text}") from error
        if tensor.storage:
            self._memory.write(self._content(self._describe(made)), tensor.storage)
        return made

    def download(self, tensor: SimTensor) -> HostTensor:
        """A tensor's content and layout as they are now."""
        now = self._describe(tensor)
        content = self._memory.read(self._content(now), now.nbytes) if now.nbytes else b""
        return HostTensor(
            now.dtype, now.shape, now.stride, now.offset, content, now.device, now.conj, now.neg
        )

    def call(
        self, op: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Call:
        """Calls an overload through the release's dispatcher.

        Tensors are `SimTensor`, or anything that `upload` takes. After a fault the outcome is
        unknown and all tensors are lost. Raises ArgumentError for values that no argument takes.
        """
        started = time.perf_counter()
        self._services.recorder.begin()
        try:
            self._release_dead()
            call = self._dispatch(op, args, kwargs or {})
        except Fault as error:
            call = self._unknown(error)
            self.restart()
        self._services.context.forget_scratch()
        return msgspec.structs.replace(call, seconds=time.perf_counter() - started)

    def pointer(self, value: Any) -> int | None:
        """Address of a tensor; None for anything else."""
        return self.pointer_of(value) if isinstance(value, SimTensor) else None

    def pointer_of(self, tensor: SimTensor) -> int:
        """Address of a tensor; Fault when the process was restarted since it was made."""
        if tensor.epoch != self.epoch:
            raise Fault("a tensor of an earlier start of the process is used")
        return tensor.pointer

    def make(self, pointer: int) -> SimTensor:
        """A handle that owns a reference to a tensor."""
        now = self._entries.describe(pointer)
        made = SimTensor(
            pointer, now.dtype, now.shape, now.stride, now.offset, now.device, self.epoch
        )
        self._alive.add(made)
        weakref.finalize(made, self._dead.append, (pointer, self.epoch)).atexit = False
        return made

    def _load(self) -> process.Machine:
        manifest, folder = self.prepared.manifest, self.prepared.folder
        files = {part.name: folder / part.file for part in manifest.parts}
        space = process.Space.new(self._memory, files)
        for library in manifest.libraries:
            part = self.prepared.part(library.name)
            self._memory.add(part.start, part.size, part.name, folder / part.file)
        imports = Imports(self._memory, space.stubs, space.data)
        return process.Machine(space, Cpu(self._memory, space.stubs, space.stack), imports)

    def _start(self) -> None:
        manifest, imports = self.prepared.manifest, self._machine.imports
        imports.restore(manifest.functions, manifest.data, manifest.data_used)
        self._services = process.serve(
            self._machine,
            manifest.libraries,
            self.prepared.bundled(),
            self.macos,
            self.gpu,
            self.shaders,
            self._graphs,
            FALLBACK if self.fallback else {},
        )
        self._services.context.requested = self._watches.requested
        if self.fallback:
            enable_fallback(self._memory, self.prepared)
        heap_end = manifest.symbols["_opscan_heap_end"]
        self._memory.set_u64(heap_end, self._machine.space.heap.end)
        arena = Arena(self._memory, imports.allocate(_ARENA), _ARENA)
        self._entries = EntryPoints(self._machine.cpu, manifest.symbols, arena)

    def _describe(self, tensor: SimTensor) -> Description:
        try:
            return self._entries.describe(self.pointer_of(tensor))
        except Raised as error:
            raise Fault(f"a tensor cannot be read: {error.text}") from error

    def _content(self, tensor: Description) -> int:
        """Where a storage's bytes lie."""
        if tensor.device == "cpu" or not tensor.storage:
            return tensor.storage
        return int(self._services.runtime.find(tensor.storage).contents_at)

    def _release_dead(self) -> None:
        while self._dead:
            pointer, epoch = self._dead.pop()
            if epoch == self.epoch:
                self._entries.release(pointer)
        if not self._alive and self._is_large():
            self.restart()

    def _is_large(self) -> bool:
        objects = len(self._services.runtime.objects())
        return self.heap_bytes > _HEAP_LIMIT or objects > _OBJECT_LIMIT

    def _dispatch(self, op: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        schema = self.schema(op)
        if schema is None:
            return Call("unknown", "unknown", message=f"this release has no operator {op}")
        names = [argument.name for argument in schema]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        surplus = sorted(set(given) - set(names))
        if surplus or len(args) > len(names):
            raise ArgumentError(f"{op} takes no {', '.join(surplus) or 'so many arguments'}")
        uploaded = {name: self._uploaded(value) for name, value in given.items()}
        self._services.recorder.begin()
        self._watches.begin()
        try:
            outputs = self._entries.call(op, schema, uploaded, self)
        except Raised as error:
            return self._raised(error)
        return self._returned(outputs)

    def _uploaded(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._uploaded(item) for item in value]
        if isinstance(value, HostTensor) or hasattr(value, "untyped_storage"):
            return self.upload(value)
        return value

    def _raised(self, error: Raised) -> Call:
        recorder = self._services.recorder
        if recorder.refused or not error.kind:
            reason = f"not executable: {recorder.refused[0]}" if recorder.refused else error.text
            return self._observed("unknown", recorder.path(), message=reason, error=error.kind)
        kind = self._watches.python_class(error.kind)
        return self._observed("raises", "raises", message=error.text, error=kind)

    def _returned(self, outputs: tuple[Any, ...]) -> Call:
        recorder = self._services.recorder
        path = recorder.path()
        if recorder.refused:
            message = f"not executable: {recorder.refused[0]}"
            return self._observed("unknown", path, outputs=outputs, message=message)
        return self._observed(path, path, outputs=outputs)

    def _unknown(self, error: Fault) -> Call:
        recorder = self._services.recorder
        reason = f"not executable: {recorder.refused[0]}" if recorder.refused else error.reason
        return self._observed("unknown", "unknown", message=reason)

    def _observed(self, outcome: trace.Outcome, path: trace.Outcome, **rest: Any) -> Call:
        recorder = self._services.recorder
        return Call(
            outcome,
            path,
            events=tuple(recorder.events),
            warnings=tuple(recorder.warnings),
            findings=tuple(recorder.findings),
            notes=tuple(recorder.notes),
            runs=tuple(recorder.runs),
            fallbacks=tuple(recorder.fallbacks),
            routines=tuple(recorder.routines),
            **rest,
        )
