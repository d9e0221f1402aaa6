"""Loads a release's libraries, runs their initialisers and writes what is then in memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from scanner.sim import process
from scanner.sim.executors import NoGraphs, NoShaders
from scanner.sim.gpu import Gpu
from scanner.sim.libraries import Loaded
from scanner.sim.loader import link
from scanner.sim.machine.cpu import Cpu
from scanner.sim.machine.imports import Imports
from scanner.sim.machine.memory import Memory
from scanner.sim.prepare.metallib import kernel_names
from scanner.sim.prepare.prepared import FORMAT, MANIFEST, Library, Manifest, Part

__all__ = ["build"]

_ENTRIES = ("begin", "tensor", "alias", "release", "describe", "schema", "call")
_NEEDED = (
    "_opscan_heap_start",
    "_opscan_heap_end",
    "_opscan_heap_live",
    *(f"_opscan_{name}" for name in _ENTRIES),
)
_BOXED = r"__ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN2atL?"
_ALLOCATOR = r"__ZN2at3mps13HeapAllocator20MPSHeapAllocatorImpl"
_WATCHED = {
    "mps_fallback": re.compile(rf"{_BOXED}12mps_fallbackE"),
    "mps_error_fallback": re.compile(rf"{_BOXED}18mps_error_fallbackE"),
    "mps_allocate": re.compile(rf"{_ALLOCATOR}18alloc_buffer_blockE"),
    # 2.0's takes a pointer to non-const, and answers with the size of a buffer's first use.
    "mps_requested_size": re.compile(rf"{_ALLOCATOR}22getUnalignedBufferSizeEPKv$"),
    "throw": re.compile(r"___cxa_throw$"),
}
"""Functions of a release that a session watches, calls or replaces."""
_METAL = "metal"
_CHUNK = 1 << 22
_INITIAL_MACOS = (15, 0)
_INITIALISER_BLOCKS = 1 << 40

Progress = Callable[[str], None]


def build(
    paths: list[Path], folder: Path, release: str, wheel: tuple[str, str], native: str
) -> None:
    """Writes the parts and, last, the manifest into a folder.

    `wheel` is the wheel's name and hash. Takes about half a minute.
    """
    memory = Memory()
    try:
        machine, images = _load(paths, memory)
        libraries = tuple(_loaded(image) for image in images)
        _initialise(machine, images, libraries)
        bundled = tuple(_bundled(images, folder))
        holes = [(library.start, library.size) for library in bundled]
        manifest = Manifest(
            format=FORMAT,
            release=release,
            wheel=wheel[0],
            wheel_sha256=wheel[1],
            native=native,
            parts=tuple(_parts(machine, images, folder, holes)),
            libraries=libraries,
            bundled=bundled,
            functions=machine.imports.functions,
            data=machine.imports.data,
            data_used=machine.imports.used,
            symbols=_symbols(images),
        )
        temporary = folder / f"{MANIFEST}.part"
        temporary.write_bytes(msgspec.json.encode(manifest))
        temporary.replace(folder / MANIFEST)
    finally:
        memory.close()


def _load(paths: list[Path], memory: Memory) -> tuple[process.Machine, list[link.Image]]:
    space = process.Space.new(memory)
    imports = Imports(memory, space.stubs, space.data)
    getter = imports.thread_getter()
    images = link.link(paths, memory, imports.resolve, imports.thread_block, getter)
    cpu = Cpu(memory, space.stubs, space.stack)
    return process.Machine(space, cpu, imports), images


def _initialise(
    machine: process.Machine, images: list[link.Image], libraries: tuple[Loaded, ...]
) -> None:
    memory, heap = machine.space.memory, machine.space.heap
    symbols = _symbols(images)
    memory.set_u64(symbols["_opscan_heap_start"], heap.start + 64)
    memory.set_u64(symbols["_opscan_heap_end"], heap.end)
    process.fill_data(machine)
    process.serve(machine, libraries, (), _INITIAL_MACOS, Gpu(), NoShaders(), NoGraphs())
    machine.cpu.blocks = _INITIALISER_BLOCKS
    for image in images:
        for function in link.initialisers(image):
            machine.cpu.call(function, [0, 0, 0, 0, 0])
    machine.cpu.call(symbols["_opscan_begin"])


def _loaded(image: link.Image) -> Loaded:
    sections = {
        f"{section.segment},{section.name}": (section.address, section.size)
        for section in image.library.sections.values()
    }
    return Loaded(image.name, image.base, image.size, sections)


def _bundled(images: list[link.Image], folder: Path) -> Iterator[Library]:
    """Puts the Metal libraries into files of their own."""
    for image in images:
        for section in image.library.sections.values():
            if section.name.startswith(_METAL):
                data = image.library.slice((section.offset, section.size))
                file = f"{section.name}.metallib"
                (folder / file).write_bytes(data)
                names = tuple(kernel_names(data))
                start = image.base + section.address
                digest = hashlib.sha256(data).hexdigest()
                yield Library(section.name, start, section.size, file, names, digest)


def _parts(
    machine: process.Machine,
    images: list[link.Image],
    folder: Path,
    holes: list[tuple[int, int]],
) -> Iterator[Part]:
    space = machine.space
    memory = space.memory
    for image in images:
        yield _write(memory, folder, image.name, image.base, image.size, image.size, holes)
    used = memory.u64(_symbols(images)["_opscan_heap_start"]) - space.heap.start
    stubs, data, heap = space.stubs, space.data, space.heap
    yield _write(memory, folder, "stubs", stubs.start, stubs.size, stubs.size, [])
    yield _write(memory, folder, "data", data.start, data.size, machine.imports.used, [])
    yield _write(memory, folder, "heap", heap.start, heap.size, used, [])


def _write(
    memory: Memory,
    folder: Path,
    name: str,
    start: int,
    size: int,
    used: int,
    holes: list[tuple[int, int]],
) -> Part:
    """Writes memory to a file; holes and zero pages take no space on disk."""
    file = f"{name}.mem"
    hasher = hashlib.sha256()
    with (folder / file).open("wb") as out:
        for offset in range(0, used, _CHUNK):
            length = min(_CHUNK, used - offset)
            chunk = _without(memory.read(start + offset, length), start + offset, holes)
            hasher.update(chunk)
            if any(chunk):
                out.seek(offset)
                out.write(chunk)
        out.truncate(used)
    return Part(name, file, start, size, used, hasher.hexdigest())


def _without(chunk: bytes, start: int, holes: list[tuple[int, int]]) -> bytes:
    end = start + len(chunk)
    for hole, size in holes:
        low, high = max(hole, start), min(hole + size, end)
        if low < high:
            chunk = chunk[: low - start] + bytes(high - low) + chunk[high - start :]
    return chunk


def _symbols(images: list[link.Image]) -> dict[str, int]:
    found: dict[str, int] = {}
    for image in reversed(images):
        for name in _NEEDED:
            if name in image.symbols:
                found[name] = image.symbols[name]
        for name, address in image.symbols.items():
            for watched, pattern in _WATCHED.items():
                if pattern.match(name):
                    found[watched] = address
    return found
