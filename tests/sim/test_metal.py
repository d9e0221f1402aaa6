from __future__ import annotations

from typing import Any

import pytest

from scanner.sim import trace
from scanner.sim.executors import Done, NotExecutable, PipelineLimits
from scanner.sim.libraries import BundledLibrary
from scanner.sim.machine.faults import Fault, MissingSelector
from tests.sim.bench import Objects, new_objects

SHARED = 0


def device(objects: Objects) -> Any:
    return objects.context.device


def buffer(objects: Objects, size: int) -> Any:
    return objects.send(device(objects), "newBufferWithLength:options:", size, SHARED)


def command_buffer(objects: Objects) -> Any:
    queue = objects.send(device(objects), "newCommandQueue")
    return objects.send("MPSCommandBuffer", "commandBufferFromCommandQueue:", queue)


def bundled() -> Objects:
    library = BundledLibrary("metal_basic", 0x7777, 100, frozenset({"erf_dense_float_float"}))
    return new_objects((library,))


def pipeline(objects: Objects, name: str) -> Any:
    library = objects.send(
        device(objects), "newLibraryWithSource:options:error:", objects.runtime.string("x"), 0, 0
    )
    function = objects.send(library, "newFunctionWithName:", objects.runtime.string(name))
    return objects.send(device(objects), "newComputePipelineStateWithFunction:error:", function, 0)


def test_buffers_are_traced_and_given_back(objects: Objects) -> None:
    made = buffer(objects, 1000)
    assert objects.send_raw(made, "length") == 1000
    assert objects.send_raw(made, "contents") == objects.send_raw(made, "gpuAddress")
    objects.send(made, "release")
    assert objects.recorder.events == [
        trace.Allocation(kind="allocate", nbytes=1000),
        trace.Allocation(kind="free", nbytes=1000),
    ]
    assert buffer(objects, 1000).contents_at == made.contents_at


def test_heaps_give_buffers_until_they_are_full(objects: Objects) -> None:
    descriptor = objects.send("MTLHeapDescriptor", "new")
    objects.send(descriptor, "setSize:", 4096)
    heap = objects.send(device(objects), "newHeapWithDescriptor:", descriptor)
    make = "newBufferWithLength:options:"
    first = objects.send(heap, make, 1024, SHARED)
    second = objects.send(heap, make, 2048, SHARED)
    assert objects.send_raw(heap, "maxAvailableSizeWithAlignment:", 256) == 1024
    assert objects.send_raw(heap, make, 2048, SHARED) == 0
    assert objects.send_raw(heap, "usedSize") == 3072
    objects.send(first, "release")
    objects.send(second, "release")
    assert objects.send_raw(heap, "maxAvailableSizeWithAlignment:", 256) == 4096


def test_memory_in_use_is_counted(objects: Objects) -> None:
    before = objects.send_raw(device(objects), "currentAllocatedSize")
    made = buffer(objects, 1000)
    assert objects.send_raw(device(objects), "currentAllocatedSize") - before == 1024
    objects.send(made, "release")
    assert objects.send_raw(device(objects), "currentAllocatedSize") == before


def test_memory_that_is_not_there_is_our_limit(objects: Objects) -> None:
    with pytest.raises(Fault, match="1099511627776 bytes of device memory"):
        buffer(objects, 1 << 40)


def test_a_launch_has_its_arguments_and_host_addresses(objects: Objects) -> None:
    encoder = objects.send(command_buffer(objects), "computeCommandEncoder")
    objects.send(encoder, "setComputePipelineState:", pipeline(objects, "gather"))
    data = buffer(objects, 512)
    objects.send(encoder, "setBuffer:offset:atIndex:", data, 64, 1)
    objects.send(encoder, "setBytes:length:atIndex:", objects.bench.put(b"\x07\0\0\0"), 4, 0)
    objects.send(encoder, "setThreadgroupMemoryLength:atIndex:", 128, 0)
    grid, group = objects.bench.words(100, 2, 1), objects.bench.words(32, 1, 1)
    objects.send(encoder, "dispatchThreads:threadsPerThreadgroup:", grid, group)
    (launch,) = objects.executor.launches
    assert (launch.kernel.name, launch.kernel.source) == ("gather", "x")
    assert (launch.grid, launch.threadgroup, launch.mode) == ((100, 2, 1), (32, 1, 1), "threads")
    found = {(binding.kind, binding.index): binding for binding in launch.bindings}
    assert found["buffer", 1].address == objects.bench.memory.host(data.contents_at) + 64
    assert (found["buffer", 1].length, found["buffer", 1].before) == (448, 64)
    assert found["threadgroup", 0].length == 128
    copied = found["bytes", 0]
    assert objects.bench.memory.read(copied.address, copied.length) == b"\x07\0\0\0"
    event = objects.recorder.events[-1]
    assert isinstance(event, trace.Launch)
    assert event.bindings == launch.bindings


def test_what_the_allocator_added_to_a_buffer_is_its_slack(objects: Objects) -> None:
    """300 bytes were asked for; at offset 400 everything that is left is slack."""
    data = buffer(objects, 512)
    objects.context.requested = {data.address: 300}.get
    encoder = objects.send(command_buffer(objects), "computeCommandEncoder")
    objects.send(encoder, "setComputePipelineState:", pipeline(objects, "one"))
    for index, offset in enumerate((0, 64, 400)):
        objects.send(encoder, "setBuffer:offset:atIndex:", data, offset, index)
    objects.send(encoder, "setBuffer:offset:atIndex:", buffer(objects, 16), 0, 3)
    size = objects.bench.words(1, 1, 1)
    objects.send(encoder, "dispatchThreads:threadsPerThreadgroup:", size, size)
    (launch,) = objects.executor.launches
    assert [binding.slack for binding in launch.bindings] == [212, 212, 112, 0]


def test_no_bytes_need_no_address(objects: Objects) -> None:
    encoder = objects.send(command_buffer(objects), "computeCommandEncoder")
    objects.send(encoder, "setComputePipelineState:", pipeline(objects, "one"))
    objects.send(encoder, "setBytes:length:atIndex:", 0, 0, 2)
    size = objects.bench.words(1, 1, 1)
    objects.send(encoder, "dispatchThreads:threadsPerThreadgroup:", size, size)
    (launch,) = objects.executor.launches
    assert [(b.index, b.kind, b.length) for b in launch.bindings] == [(2, "bytes", 0)]


def test_bindings_stay_for_the_next_launch(objects: Objects) -> None:
    encoder = objects.send(command_buffer(objects), "computeCommandEncoder")
    objects.send(encoder, "setComputePipelineState:", pipeline(objects, "one"))
    objects.send(encoder, "setBuffer:offset:atIndex:", buffer(objects, 16), 0, 0)
    size = objects.bench.words(1, 1, 1)
    objects.send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", size, size)
    objects.send(encoder, "setBuffer:offset:atIndex:", buffer(objects, 16), 0, 1)
    objects.send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", size, size)
    first, second = objects.executor.launches
    assert [binding.index for binding in second.bindings] == [0, 1]
    assert second.bindings[0] == first.bindings[0]
    assert second.mode == "threadgroups"


def test_what_is_refused_and_what_is_found_is_kept(objects: Objects) -> None:
    encoder = objects.send(command_buffer(objects), "computeCommandEncoder")
    objects.send(encoder, "setComputePipelineState:", pipeline(objects, "one"))
    size = objects.bench.words(1, 1, 1)
    for answer in (
        Done(("wrote past the end",), ("read in the slack",)),
        NotExecutable("a reason"),
        Done(("follows from what did not run",)),
    ):
        objects.executor.answer = answer
        objects.send(encoder, "dispatchThreads:threadsPerThreadgroup:", size, size)
    assert objects.recorder.refused == ["a reason"]
    assert objects.recorder.findings == ["wrote past the end"]
    assert objects.recorder.notes == ["read in the slack"]


@pytest.mark.parametrize(("own", "expected"), [(None, 1024), (256, 256), (4096, 1024)])
def test_threads_of_a_group_are_limited_by_kernel_and_gpu(
    objects: Objects, own: int | None, expected: int
) -> None:
    objects.executor.limit = PipelineLimits(own, static_memory=64)
    made = pipeline(objects, "one")
    assert objects.send_raw(made, "maxTotalThreadsPerThreadgroup") == expected
    assert objects.send_raw(made, "staticThreadgroupMemoryLength") == 64
    assert objects.send_raw(made, "threadExecutionWidth") == 32


def test_a_bundled_library_has_only_its_kernels() -> None:
    from scanner.sim.metal.device import DispatchData

    objects = bundled()
    data = objects.runtime.adopt(DispatchData(0x7777, 100))
    library = objects.send(device(objects), "newLibraryWithData:error:", data, 0)
    known = objects.runtime.string("erf_dense_float_float")
    function = objects.send(library, "newFunctionWithName:", known)
    assert function.kernel.library == "metal_basic"
    assert function.kernel.source is None
    unknown = objects.runtime.string("erf_dense_double_double")
    assert objects.send_raw(library, "newFunctionWithName:", unknown) == 0
    objects.bench.memory.close()


def test_function_constants_are_read(objects: Objects) -> None:
    constants = objects.send("MTLFunctionConstantValues", "new")
    put = "setConstantValue:type:atIndex:"
    objects.send(constants, put, objects.bench.put(b"\x01"), 53, 4)
    objects.send(constants, put, objects.bench.put(b"\x09\0\0\0"), 33, 0)
    library = objects.send(
        device(objects), "newLibraryWithSource:options:error:", objects.runtime.string("x"), 0, 0
    )
    function = objects.send(
        library,
        "newFunctionWithName:constantValues:error:",
        objects.runtime.string("f"),
        constants,
        0,
    )
    assert function.kernel.constants == ((0, "uint", 9), (4, "bool", True))


def test_argument_buffers_hold_addresses(objects: Objects) -> None:
    library = objects.send(
        device(objects), "newLibraryWithSource:options:error:", objects.runtime.string("x"), 0, 0
    )
    function = objects.send(library, "newFunctionWithName:", objects.runtime.string("f"))
    encoder = objects.send(function, "newArgumentEncoderWithBufferIndex:", 0)
    target, data = buffer(objects, 1024), buffer(objects, 64)
    objects.send(encoder, "setArgumentBuffer:offset:", target, 16)
    objects.send(encoder, "setBuffer:offset:atIndex:", data, 8, 2)
    assert objects.bench.memory.u64(target.contents_at + 16 + 16) == data.contents_at + 8


def test_copies_and_fills(objects: Objects) -> None:
    encoder = objects.send(command_buffer(objects), "blitCommandEncoder")
    source, target = buffer(objects, 16), buffer(objects, 16)
    objects.send(encoder, "fillBuffer:range:value:", source, 4, 8, 0xAB)
    copy = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
    objects.send(encoder, copy, source, 2, target, 1, 6)
    found = objects.bench.memory.read(target.contents_at, 8)
    assert found == b"\0\0\0\xab\xab\xab\xab\0"
    assert objects.recorder.events[-2:] == [
        trace.Blit(kind="fill", nbytes=8),
        trace.Blit(kind="copy", nbytes=6),
    ]


def test_waiting_marks_the_commit(objects: Objects) -> None:
    commands = command_buffer(objects)
    objects.send(commands, "commit")
    objects.send(commands, "commitAndContinue")
    objects.send(commands, "waitUntilCompleted")
    assert objects.recorder.events == [trace.Commit(wait=False), trace.Commit(wait=True)]
    assert objects.send_raw(commands, "status") == 4
    assert objects.send_raw(commands, "error") == 0


def test_completion_handlers_run_at_commit(objects: Objects) -> None:
    """A block is {isa, flags, invoke, descriptor{reserved, size}}."""
    bench = objects.bench
    seen: list[int] = []
    bench.cpu.handlers["_invoked"] = lambda cpu: seen.append(cpu.x(1))
    invoke = bench.call_import("_invoked")
    block = bench.words(0, 0, invoke, bench.words(0, 32))
    commands = command_buffer(objects)
    objects.send(commands, "addCompletedHandler:", block)
    bench.memory.write(block, bytes(32))
    assert seen == []
    objects.send(commands, "commit")
    objects.send(commands, "commit")
    assert seen == [commands.address]


def test_events_call_who_waits(objects: Objects) -> None:
    bench = objects.bench
    seen: list[int] = []
    bench.cpu.handlers["_notified"] = lambda cpu: seen.append(cpu.x(2))
    block = bench.words(0, 0, bench.call_import("_notified"), 0)
    event = objects.send(device(objects), "newSharedEvent")
    objects.send(event, "notifyListener:atValue:block:", 0, 2, block)
    commands = command_buffer(objects)
    objects.send(commands, "encodeSignalEvent:value:", event, 1)
    assert seen == []
    objects.send(commands, "encodeSignalEvent:value:", event, 3)
    assert seen == [3]
    assert objects.send_raw(event, "signaledValue") == 3


def test_an_unknown_method_of_a_device_is_named(objects: Objects) -> None:
    with pytest.raises(MissingSelector, match="newRayTracer"):
        objects.send(device(objects), "newRayTracer")
