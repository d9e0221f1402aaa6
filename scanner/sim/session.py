"""A running release: tensors go in, operators are called, results and a trace come out."""

from __future__ import annotations

import struct
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scanner.sim import process, trace, values
from scanner.sim.executors import GraphExecutor, NoGraphs, NoShaders, ShaderExecutor
from scanner.sim.graph import recording
from scanner.sim.machine.cpu import DEFAULT_BLOCKS, Cpu
from scanner.sim.machine.faults import Fault
from scanner.sim.machine.imports import Imports
from scanner.sim.machine.memory import Memory, Region
from scanner.sim.osenv.hardware import Gpu
from scanner.sim.prepare.prepared import Prepared
from scanner.sim.values import DTYPE_NAMES, DTYPES, ITEM_SIZES, Arena, Argument, HostTensor

__all__ = ["Call", "Session", "SimTensor"]

_ARENA = 16 << 20
_RESULTS = 4096
_TEXT = 1 << 16
_RECORD = 32
_MAX_DIMENSIONS = 64
_UNDEFINED = -1
_HEAP_LIMIT = 1 << 30


@dataclass(eq=False)
class SimTensor:
    """A tensor in emulated memory. It is released when the last reference goes."""

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    device: str
    epoch: int
    """Which start of the process it belongs to."""


@dataclass(frozen=True)
class Call:
    """What a call did."""

    outcome: trace.Outcome
    path: trace.Outcome
    """What the host code chose, also when something could not be executed afterwards."""
    outputs: tuple[Any, ...] = ()
    """Results in the schema's order: `SimTensor`, lists of them, numbers, None."""
    message: str = ""
    """The exact text of an exception, or why the outcome is unknown."""
    error: str = ""
    """Python's name of the exception: `RuntimeError`, `NotImplementedError`, …"""
    events: tuple[trace.Event, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    """What the executors found wrong: accesses out of bounds, …"""
    runs: tuple[recording.GraphRun | recording.KernelRun, ...] = ()
    """Graphs and kernels as they were executed."""
    seconds: float = 0.0


@dataclass
class _Entries:
    """Addresses of the entry points."""

    addresses: Mapping[str, int]

    def __getitem__(self, name: str) -> int:
        return self.addresses[f"_opscan_{name}"]


class Session:
    """One process of a prepared release.

    Not thread safe; several sessions may live side by side. Memory of results is given back
    when they are garbage collected, and all of it by `restart`, which `call` does by itself
    after a fault.
    """

    def __init__(
        self,
        prepared: Prepared,
        macos: tuple[int, int] = (15, 5),
        gpu: Gpu | None = None,
        shaders: Callable[[Region], ShaderExecutor] | None = None,
        graphs: GraphExecutor | None = None,
        blocks: int = DEFAULT_BLOCKS,
    ) -> None:
        """`shaders` makes an executor that knows the region in which all buffers lie."""
        self.prepared = prepared
        self.macos = macos
        self.gpu = gpu or Gpu()
        self.epoch = 0
        self._graphs = graphs or NoGraphs()
        self._entries = _Entries(prepared.manifest.symbols)
        self._memory = Memory()
        self._machine = self._load()
        self._machine.cpu.blocks = blocks
        self._shaders = NoShaders() if shaders is None else shaders(self._machine.space.device)
        self._schemas: dict[str, list[Argument]] = {}
        self._dead: list[tuple[int, int]] = []
        self._start()
        self._watch_fallback()

    def close(self) -> None:
        """Gives all memory back."""
        self._memory.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def restart(self) -> None:
        """Puts the process back to its snapshot; every tensor is lost."""
        space = self._machine.space
        for part in self.prepared.manifest.parts:
            self._memory.restore(self._memory.region(part.start))
        self._memory.discard(space.device)
        self.epoch += 1
        self._dead.clear()
        self._start()

    @property
    def heap_bytes(self) -> int:
        """Size of the emulated heap."""
        used = self._memory.u64(self.prepared.manifest.symbols["_opscan_heap_start"])
        return used - self._machine.space.heap.start

    def schema(self, op: str) -> list[Argument] | None:
        """Arguments of an overload (`aten::add.Tensor`), None when the release has none of it."""
        if op not in self._schemas:
            name, _, overload = op.partition(".")
            report, text = self._report()
            address = self._entries["schema"]
            status = self._run(address, [self._text(name), self._text(overload), report])
            if status < 0:
                return None
            self._schemas[op] = [_argument(line) for line in self._read(text).splitlines()]
        return self._schemas[op]

    def upload(self, source: Any, device: str = "mps", alias: SimTensor | None = None) -> SimTensor:
        """Copies a tensor into the process.

        `source` is a `HostTensor` or a torch tensor; its dtype, shape, stride and storage offset
        are kept. With `alias` it becomes a view of that tensor's storage and its content is not
        copied. Raises Fault when the process cannot make it.
        """
        self._release_dead()
        tensor = source if isinstance(source, HostTensor) else _from_torch(source, device)
        wrapped = bool(getattr(source, "is_wrapped_number", False))
        layout = self._layout(tensor, wrapped)
        report, _ = self._report()
        out = self._arena.take(_RECORD)
        if alias is not None:
            arguments = [self._pointer(alias), layout, out, report]
            status = self._run(self._entries["alias"], arguments)
        else:
            arguments = [layout, len(tensor.storage), out, report]
            status = self._run(self._entries["tensor"], arguments)
        if status < 0:
            raise Fault(f"no tensor could be made: {self._failure(report)[1]}")
        made = self._handle(self._memory.u64(out + 24))
        if alias is None and tensor.storage:
            self._memory.write(self._content(made)[0], tensor.storage)
        return made

    def download(self, tensor: SimTensor) -> HostTensor:
        """A tensor's content and layout as they are now."""
        start, nbytes, words = self._describe(tensor)
        ndim = words[8]
        return HostTensor(
            dtype=DTYPE_NAMES[words[0]],
            shape=tuple(words[9 : 9 + ndim]),
            stride=tuple(words[9 + ndim : 9 + 2 * ndim]),
            offset=words[2],
            storage=self._memory.read(start, nbytes) if nbytes else b"",
            device="mps" if words[1] else "cpu",
            conj=bool(words[5]),
            neg=bool(words[6]),
        )

    def call(
        self, op: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Call:
        """Calls an overload through the release's dispatcher.

        Tensors are `SimTensor`, or anything that `upload` takes. After an unknown outcome that is
        due to a fault all tensors are lost.
        """
        started = time.perf_counter()
        recorder = self._services.recorder
        self._release_dead()
        recorder.begin()
        try:
            status, report, out = self._dispatch(op, args, kwargs or {})
            call = self._finish(status, report, out)
        except (Fault, MemoryError) as error:
            call = self._unknown(error)
            self.restart()
        self._services.context.forget_scratch()
        elapsed = time.perf_counter() - started
        return Call(**{**vars(call), "seconds": elapsed})

    def fresh(self) -> bool:
        """Restarts when the heap has grown large; True when it did."""
        large = self.heap_bytes > _HEAP_LIMIT
        if large:
            self.restart()
        return large

    # How it is done

    def _load(self) -> process.Machine:
        files = {part.name: part for part in self.prepared.manifest.parts}
        folder = self.prepared.folder
        space = process.Space.new(
            self._memory, lambda name: folder / files[name].file if name in files else None
        )
        for library in self.prepared.manifest.libraries:
            part = files[library.name]
            self._memory.add(part.start, part.size, part.name, folder / part.file)
        imports = Imports(self._memory, space.stubs, space.data)
        return process.Machine(space, Cpu(self._memory, space.stubs, space.stack), imports)

    def _start(self) -> None:
        manifest = self.prepared.manifest
        imports = self._machine.imports
        imports.restore(manifest.functions, manifest.data, manifest.data_used)
        self._services = process.serve(
            self._machine,
            manifest.libraries,
            self.prepared.bundled(),
            self.macos,
            self.gpu,
            self._shaders,
            self._graphs,
        )
        self._arena = Arena(self._memory, imports.allocate(_ARENA), _ARENA)

    def _watch_fallback(self) -> None:
        address = self.prepared.manifest.symbols.get("mps_fallback")
        if address is not None:
            self._machine.cpu.watch(address, lambda: self._services.recorder.fallback())

    def _run(self, address: int, arguments: Sequence[int]) -> int:
        status = self._machine.cpu.call(address, arguments)
        return status - (1 << 64) if status >> 63 else status

    def _text(self, text: str) -> int:
        return self._arena.put(text.encode() + b"\0")

    def _report(self) -> tuple[int, int]:
        kind, text = self._arena.take(64), self._arena.take(_TEXT)
        self._memory.write(kind, b"\0")
        self._memory.write(text, b"\0")
        return self._arena.put(struct.pack("<QQQ", kind, text, _TEXT)), text

    def _failure(self, report: int) -> tuple[str, str]:
        kind, text = self._memory.words(report, 2)
        return self._read(kind), self._read(text)

    def _read(self, address: int) -> str:
        return self._memory.text(address)

    def _layout(self, tensor: HostTensor, wrapped: bool) -> int:
        ndim = len(tensor.shape)
        lists = self._arena.put(struct.pack(f"<{2 * ndim}q", *tensor.shape, *tensor.stride))
        device = 0 if tensor.device == "cpu" else 13
        words = (DTYPES[tensor.dtype], device, ndim, tensor.offset, wrapped, tensor.conj, tensor.neg)
        return self._arena.put(struct.pack("<9q", *words, lists, lists + 8 * ndim))

    def _pointer(self, tensor: SimTensor) -> int:
        if tensor.epoch != self.epoch:
            raise Fault("a tensor of an earlier start of the process is used")
        return tensor.pointer

    def _describe(self, tensor: SimTensor) -> tuple[int, int, tuple[int, ...]]:
        """Address and size of the storage, and all words of a description."""
        size = 9 + 2 * _MAX_DIMENSIONS
        self._arena.reset()
        out = self._arena.take(8 * size)
        report, _ = self._report()
        arguments = [self._pointer(tensor), out, report]
        if self._run(self._entries["describe"], arguments) < 0:
            raise Fault(f"a tensor cannot be read: {self._failure(report)[1]}")
        words = struct.unpack(f"<{size}q", self._memory.read(out, 8 * size))
        start, nbytes = words[4] & 0xFFFFFFFFFFFFFFFF, words[3]
        if words[1] and start:
            start = self._services.runtime.find(start).contents_at
        return start, nbytes, words

    def _content(self, tensor: SimTensor) -> tuple[int, int]:
        start, nbytes, _ = self._describe(tensor)
        return start, nbytes

    def _handle(self, pointer: int) -> SimTensor:
        made = SimTensor(pointer, "", (), (), 0, "", self.epoch)
        _, _, words = self._describe(made)
        ndim = words[8]
        made.dtype = DTYPE_NAMES.get(words[0], str(words[0]))
        made.shape = tuple(words[9 : 9 + ndim])
        made.stride = tuple(words[9 + ndim : 9 + 2 * ndim]) if words[7] else ()
        made.offset = words[2]
        made.device = "mps" if words[1] else "cpu"
        weakref.finalize(made, self._dead.append, (pointer, self.epoch)).atexit = False
        return made

    def _release_dead(self) -> None:
        self._arena.reset()
        while self._dead:
            pointer, epoch = self._dead.pop()
            if epoch == self.epoch:
                self._machine.cpu.call(self._entries["release"], [pointer])

    def _dispatch(
        self, op: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[int, int, int]:
        schema = self.schema(op)
        if schema is None:
            raise Fault(f"torch {self.prepared.release} has no operator {op}")
        given = {**dict(zip([a.name for a in schema], args, strict=False)), **kwargs}
        uploaded = {name: self._uploaded(value) for name, value in given.items()}
        self._arena.reset()
        raw = b"".join(self._encoded(argument, uploaded) for argument in schema)
        encoded = self._arena.put(raw)
        out = self._arena.take(_RECORD * _RESULTS)
        report, _ = self._report()
        name, _, overload = op.partition(".")
        arguments = [self._text(name), self._text(overload), encoded, out, _RESULTS, report]
        self._services.recorder.begin()
        return self._run(self._entries["call"], arguments), report, out

    def _encoded(self, argument: Argument, given: Mapping[str, Any]) -> bytes:
        if argument.name not in given:
            return values.default()
        return values.encode(given[argument.name], argument.type, self._arena, self._address)

    def _address(self, value: Any) -> int | None:
        return self._pointer(value) if isinstance(value, SimTensor) else None

    def _uploaded(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._uploaded(item) for item in value]
        if isinstance(value, HostTensor) or hasattr(value, "untyped_storage"):
            return self.upload(value)
        return value

    def _finish(self, status: int, report: int, out: int) -> Call:
        recorder = self._services.recorder
        path = self._path()
        refused = recorder.refused[0] if recorder.refused else ""
        common: dict[str, Any] = {
            "events": tuple(recorder.events),
            "warnings": tuple(recorder.warnings),
            "findings": tuple(recorder.findings),
            "runs": tuple(recorder.runs),
        }
        if status < 0:
            kind, text = self._failure(report)
            if refused or not kind:
                reason = f"not executable: {refused}" if refused else text
                return Call("unknown", path, message=reason, error=kind, **common)
            return Call("raises", "raises", message=text, error=kind, **common)
        raw = self._memory.read(out, _RECORD * status)
        outputs = tuple(values.decode(raw, status, self._handle))
        if refused:
            message = f"not executable: {refused}"
            return Call("unknown", path, outputs, message, **common)
        return Call(path, path, outputs, **common)

    def _path(self) -> trace.Outcome:
        recorder = self._services.recorder
        if recorder.fallbacks:
            return "fallback"
        if any(isinstance(event, trace.GraphRun) for event in recorder.events):
            return "native-graph"
        return "native-shader"

    def _unknown(self, error: Exception) -> Call:
        recorder = self._services.recorder
        reason = error.reason if isinstance(error, Fault) else str(error)
        if recorder.refused:
            reason = f"not executable: {recorder.refused[0]}"
        return Call("unknown", "unknown", message=reason, events=tuple(recorder.events))


def _argument(line: str) -> Argument:
    name, kind, keyword_only, has_default = line.split("\t")
    return Argument(name, kind, keyword_only == "1", has_default == "1")


def _from_torch(tensor: Any, device: str) -> HostTensor:
    """Layout and whole storage of a torch tensor on the CPU."""
    storage = tensor.untyped_storage()
    return HostTensor(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        offset=int(tensor.storage_offset()),
        storage=bytes(storage) if storage.nbytes() else b"",
        device=device,
        conj=bool(tensor.is_conj()),
        neg=bool(tensor.is_neg()),
    )
