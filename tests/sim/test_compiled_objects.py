"""Blocks and classes that the compiler laid out in a library."""

from __future__ import annotations

import struct

import pytest

from scanner.sim.libraries import Loaded
from scanner.sim.machine.faults import Fault, MissingSelector
from scanner.sim.objc.blocks import Block
from scanner.sim.objc.compiled import compiled_classes
from scanner.sim.objc.runtime import Runtime
from tests.sim.bench import ADD_X0_X0_X1, RETURN, Bench

HAS_HELPERS = 1 << 25
IS_GLOBAL = 1 << 28
RELATIVE = 0x8000_000C


def runtime_with(bench: Bench, kind: str) -> tuple[Runtime, int]:
    """A runtime that knows a block class, and its address."""
    isa = bench.imports.resolve(kind)
    return Runtime(bench.memory, bench.imports.data, bench.imports.allocate), isa


def send(bench: Bench, runtime: Runtime, receiver: int, selector: str, *words: int) -> int:
    return bench.serve(runtime.imports()["_objc_msgSend"], receiver, bench.text(selector), *words)


def test_a_copied_block_survives_its_frame(bench: Bench) -> None:
    """{isa, flags, invoke, descriptor, captured}; the helper is told (copy, original)."""
    seen: list[tuple[int, int]] = []
    bench.cpu.handlers["_helper"] = lambda cpu: seen.append((cpu.x(0), cpu.x(1)))
    helper = bench.call_import("_helper")
    runtime, isa = runtime_with(bench, "__NSConcreteStackBlock")
    descriptor = bench.words(0, 40, helper, 0)
    block = bench.words(isa, HAS_HELPERS, 7, descriptor, 42)
    copy = send(bench, runtime, block, "copy")
    assert seen == [(copy, block)]
    bench.memory.write(block, bytes(40))
    assert bench.memory.words(copy, 5) == (isa, HAS_HELPERS, 7, descriptor, 42)
    assert isinstance(runtime.find(copy), Block)
    assert send(bench, runtime, copy, "autorelease") == copy


def test_a_global_block_is_its_own_copy(bench: Bench) -> None:
    runtime, isa = runtime_with(bench, "__NSConcreteGlobalBlock")
    block = bench.words(isa, IS_GLOBAL, 7, bench.words(0, 32))
    assert send(bench, runtime, block, "copy") == block


def a_class(bench: Bench, methods: int) -> int:
    """{isa, superclass, cache, unused, data}; data: flags, sizes, ivars, name at 24, methods."""

    def constant_part(name: str, methods: int) -> int:
        return bench.words(0, 0, 0, bench.text(name), methods)

    metaclass = bench.words(0, 0, 0, 0, constant_part("Sum", methods))
    return bench.words(metaclass, 0, 0, 0, constant_part("Sum", 0) | 1)


def listed(bench: Bench, address: int) -> Loaded:
    base, start = bench.data.start, bench.words(address)
    return Loaded("a", base, 0, {"__DATA,__objc_classlist": (start - base, 8)})


@pytest.mark.parametrize("relative", [True, False])
def test_class_methods_of_a_library_are_run(bench: Bench, relative: bool) -> None:
    code = bench.assemble(ADD_X0_X0_X1, RETURN)
    selector = bench.text("descriptor")
    if relative:
        methods = bench.put(bytes(20))
        reference = bench.words(selector)
        entry = struct.pack("<3i", reference - methods - 8, 0, code - methods - 16)
        bench.memory.write(methods, struct.pack("<2I", RELATIVE, 1) + entry)
    else:
        methods = bench.put(struct.pack("<2I3Q", 24, 1, selector, 0, code))
    address = a_class(bench, methods)
    runtime = Runtime(bench.memory, bench.imports.data, bench.imports.allocate)
    for place, kind in compiled_classes(bench.memory, [listed(bench, address)]):
        runtime.define_at(kind, place)
    assert runtime.class_named("Sum").address == address
    name = bench.text("descriptor")
    handler = runtime.imports()["_objc_msgSend"]
    assert bench.serve(handler, address, name) == (address + name) % (1 << 64)
    with pytest.raises(MissingSelector, match=r"\[Sum other\]"):
        send(bench, runtime, address, "other")
    with pytest.raises(Fault, match="own class Sum"):
        send(bench, runtime, address, "alloc")
