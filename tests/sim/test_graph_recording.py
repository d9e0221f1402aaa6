from __future__ import annotations

from typing import Any

import pytest

from scanner.sim import trace
from scanner.sim.graph.recording import (
    Argument,
    Constant,
    Descriptor,
    Graph,
    Op,
    Placeholder,
    Ref,
    TensorData,
    TensorType,
)
from scanner.sim.machine.faults import Fault
from scanner.sim.metal.dtypes import CODES, dtype_code, dtype_name
from tests.sim.bench import Objects

FLOAT32, FLOAT16, BOOL, INT64 = 0x10000020, 0x10000010, 0x80000008, 0x20000040


def placeholder(objects: Objects, graph: Any, *shape: int, dtype: int = FLOAT32) -> Any:
    select = "placeholderWithShape:dataType:name:"
    return objects.send(graph, select, objects.array(*shape), dtype, 0)


@pytest.fixture
def graph(objects: Objects) -> Any:
    return objects.send("MPSGraph", "new")


def last(graph: Any) -> Op:
    node = graph.snapshot().nodes[-1]
    assert isinstance(node, Op)
    return node


def test_data_types_of_the_headers() -> None:
    assert [dtype_code(n) for n in ("float32", "float16", "bool", "int64")] == [
        FLOAT32,
        FLOAT16,
        BOOL,
        INT64,
    ]
    assert len(set(CODES.values())) == len(CODES)
    assert dtype_name(0xFFFF_0000_0000 | FLOAT16) == "float16"
    assert dtype_name(0) == ""


def test_placeholders_constants_and_operations(objects: Objects, graph: Any) -> None:
    x = placeholder(objects, graph, 2, 3, dtype=FLOAT16)
    two = objects.send(graph, "constantWithScalar:dataType:", FLOAT16, floats=[2.0])
    total = objects.send(
        graph,
        "additionWithPrimaryTensor:secondaryTensor:name:",
        x,
        two,
        objects.runtime.string("s"),
    )
    assert graph.snapshot() == Graph(
        (
            Placeholder(1, TensorType((2, 3), "float16")),
            Constant(2, TensorType((), "float16"), scalar=2.0),
            Op(
                "additionWithPrimaryTensor:secondaryTensor:name:",
                (
                    Argument("additionWithPrimaryTensor", Ref(1)),
                    Argument("secondaryTensor", Ref(2)),
                    Argument("name", "s"),
                ),
                (3,),
            ),
        )
    )
    assert total.number == 3
    assert last(graph).inputs == (1, 2)
    assert last(graph)["secondaryTensor"] == Ref(2)
    with pytest.raises(KeyError):
        last(graph)["thirdTensor"]


def test_constants_with_content(objects: Objects, graph: Any) -> None:
    data = objects.send("NSData", "dataWithBytes:length:", objects.bench.put(b"abcdefgh"), 8)
    shape = objects.array(2, 1)
    objects.send(graph, "constantWithData:shape:dataType:", data, shape, FLOAT32)
    objects.send(graph, "constantWithScalar:shape:dataType:", shape, INT64, floats=[-1.0])
    assert graph.snapshot().nodes == (
        Constant(1, TensorType((2, 1), "float32"), data=b"abcdefgh"),
        Constant(2, TensorType((2, 1), "int64"), scalar=-1.0),
    )


def test_lists_axes_and_negative_numbers(objects: Objects, graph: Any) -> None:
    x, y = placeholder(objects, graph, 2), placeholder(objects, graph, 2)
    both = objects.objects(x, y)
    objects.send(graph, "concatTensors:dimension:interleave:name:", both, -1, 0x100, 0)
    op = last(graph)
    assert op["concatTensors"] == (Ref(1), Ref(2))
    assert op["dimension"] == -1
    assert op["interleave"] is False
    assert op["name"] is None
    assert op.inputs == (1, 2)


def test_floating_arguments_and_packed_stack_arguments(objects: Objects, graph: Any) -> None:
    """Six integer arguments fit registers; two masks share a stack word, the name follows."""
    x = placeholder(objects, graph, 4)
    axes = objects.array(0)
    objects.send(graph, "dropoutTensor:rate:name:", x, 0, floats=[0.25])
    assert last(graph)["rate"] == 0.25
    selector = (
        "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:"
        "startMask:endMask:squeezeMask:name:"
    )
    objects.send(graph, selector, x, x, axes, axes, axes, 1, 2 | 3 << 32, 0)
    op = last(graph)
    assert [op[part] for part in ("startMask", "endMask", "squeezeMask", "name")] == [1, 2, 3, None]
    assert op["starts"] == (0,)


def test_descriptors_are_kept_with_their_properties(objects: Objects, graph: Any) -> None:
    name = "MPSGraphPooling2DOpDescriptor"
    descriptor = objects.send(
        name,
        "descriptorWithKernelWidth:kernelHeight:strideInX:strideInY:paddingStyle:dataLayout:",
        3,
        2,
        1,
        1,
        0,
        1,
    )
    objects.send(descriptor, "setCeilMode:", 0xFFFFFF01)
    objects.send(descriptor, "setReturnIndicesDataType:", 0x20000020)
    x = placeholder(objects, graph, 1, 1, 4, 4)
    pair = objects.send(
        graph, "maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:", x, descriptor, 0
    )
    op = last(graph)
    assert op["descriptor"] == Descriptor(
        name,
        {
            "kernelWidth": 3,
            "kernelHeight": 2,
            "strideInX": 1,
            "strideInY": 1,
            "paddingStyle": 0,
            "dataLayout": 1,
            "ceilMode": True,
            "returnIndicesDataType": "int32",
        },
    )
    assert op.outputs == (2, 3)
    assert objects.send_raw(pair, "count") == 2


def test_random_descriptors_have_floating_properties(objects: Objects) -> None:
    descriptor = objects.send(
        "MPSGraphRandomOpDescriptor", "descriptorWithDistribution:dataType:", 1, FLOAT32
    )
    objects.bench.cpu.set_s(0, 0.5)
    objects.send_raw(descriptor, "setMean:")
    objects.send(descriptor, "setMinInteger:", -4)
    assert descriptor.properties == {
        "distribution": 1,
        "dataType": "float32",
        "mean": 0.5,
        "minInteger": -4,
    }


def test_split_returns_as_many_tensors_as_asked(objects: Objects, graph: Any) -> None:
    x = placeholder(objects, graph, 6)
    parts = objects.send(graph, "splitTensor:numSplits:axis:name:", x, 3, 0, 0)
    assert last(graph).outputs == (2, 3, 4)
    assert objects.send(parts, "objectAtIndex:", 2).number == 4


@pytest.mark.parametrize(
    ("selector", "arguments", "expected"),
    [
        ("castTensor:toType:name:", (FLOAT16, 0), FLOAT16),
        ("squareWithTensor:name:", (0,), FLOAT32),
        ("isNaNWithTensor:name:", (0,), BOOL),
        ("reductionArgMaximumWithTensor:axis:name:", (0, 0), 0x20000020),
    ],
)
def test_types_of_intermediates(
    objects: Objects, graph: Any, selector: str, arguments: tuple[int, ...], expected: int
) -> None:
    x = placeholder(objects, graph, 2)
    made = objects.send(graph, selector, x, *arguments)
    assert objects.send_raw(made, "dataType") == expected


def test_shapes_of_intermediates_are_asked_of_the_interpreter(objects: Objects, graph: Any) -> None:
    x = placeholder(objects, graph, 2)
    assert [n.value() for n in map(objects.runtime.find, objects.send(x, "shape").items)] == [2]
    unknown = objects.send(graph, "squareWithTensor:name:", x, 0)
    with pytest.raises(Fault, match="shape of an intermediate"):
        objects.send(unknown, "shape")
    objects.executor.inferred = TensorType((7,), "float32")
    known = objects.send(graph, "squareWithTensor:name:", x, 0)
    assert [n.value() for n in map(objects.runtime.find, objects.send(known, "shape").items)] == [7]


def tensor_data(objects: Objects, buffer: Any, *shape: int) -> Any:
    made = objects.send("MPSGraphTensorData", "alloc")
    sizes = objects.array(*shape)
    return objects.send(made, "initWithMTLBuffer:shape:dataType:", buffer, sizes, FLOAT32)


def test_a_run_has_its_memory(objects: Objects, graph: Any) -> None:
    x = placeholder(objects, graph, 2, 3)
    y = objects.send(graph, "squareWithTensor:name:", x, 0)
    buffers = [
        objects.send(objects.context.device, "newBufferWithLength:options:", 64, 0)
        for _ in range(2)
    ]
    pairs = []
    for key, buffer in zip((x, y), buffers, strict=True):
        data = tensor_data(objects, buffer, 2, 3)
        values, keys = objects.bench.words(data.address), objects.bench.words(key.address)
        pairs.append(
            objects.send("NSDictionary", "dictionaryWithObjects:forKeys:count:", values, keys, 1)
        )
    encode = "encodeToCommandBuffer:feeds:targetOperations:resultsDictionary:executionDescriptor:"
    objects.send(graph, encode, 0, pairs[0], 0, pairs[1], 0)
    (run,) = objects.executor.graphs
    addresses = [objects.bench.memory.host(buffer.contents_at) for buffer in buffers]
    assert run.feeds == ((1, TensorData(addresses[0], 64, (2, 3), "float32")),)
    assert run.results == ((2, TensorData(addresses[1], 64, (2, 3), "float32")),)
    event = objects.recorder.events[-1]
    assert isinstance(event, trace.GraphRun)
    assert [node.selector for node in event.nodes] == ["placeholder", "squareWithTensor:name:"]


def ndarray(objects: Objects, *shape: int) -> Any:
    descriptor = objects.send(
        "MPSNDArrayDescriptor", "descriptorWithDataType:shape:", FLOAT32, objects.array(*shape)
    )
    made = objects.send("MPSNDArray", "alloc")
    return objects.send(made, "initWithDevice:descriptor:", 0, descriptor)


def test_views_of_arrays_count_dimensions_from_the_fastest(objects: Objects) -> None:
    array = ndarray(objects, 2, 3, 4)
    assert objects.send_raw(array, "numberOfDimensions") == 3
    assert [objects.send_raw(array, "lengthOfDimension:", d) for d in range(3)] == [4, 3, 2]
    descriptor = objects.send(array, "descriptor")
    objects.send(descriptor, "sliceDimension:withSubrange:", 1, 1, 2)
    objects.send(descriptor, "transposeDimension:withDimension:", 0, 2)
    view = objects.send(array, "arrayViewWithCommandBuffer:descriptor:aliasing:", 0, descriptor, 1)
    whole, part = array.value(), view.value()
    assert whole.strides is None
    assert part.shape == (4, 2, 2)
    assert part.strides == (1, 4, 12)
    assert part.address == whole.address + 4 * 4
    assert part.nbytes == whole.nbytes - 16


def test_arrays_with_strides_and_bytes(objects: Objects) -> None:
    array = ndarray(objects, 2, 2)
    objects.send(array, "writeBytes:strideBytes:", objects.bench.put(bytes(range(16))), 0)
    assert objects.bench.memory.read(array.view.address, 16) == bytes(range(16))
    view = objects.send(
        array, "arrayViewWithShape:strides:", objects.array(2, 2), objects.array(1, 2)
    )
    assert view.value().strides == (1, 2)


def test_reshaped_arrays_stay_where_they_are(objects: Objects) -> None:
    """Host code adds an axis of length 1 where the last stride is not 1, and drops it again."""
    array = ndarray(objects, 6)
    view = objects.send(
        array, "arrayViewWithShape:strides:", objects.array(3, 1), objects.array(2, 1)
    )
    identity = objects.send("MPSNDArrayIdentity", "alloc")
    select = "reshapeWithCommandBuffer:sourceArray:shape:destinationArray:"
    dropped = objects.send(identity, select, 0, view, objects.array(3), 0).value()
    assert (dropped.shape, dropped.strides) == ((3,), (2,))
    dense = objects.send(identity, select, 0, array, objects.array(2, 3), 0).value()
    assert (dense.shape, dense.strides) == ((2, 3), None)
    with pytest.raises(Fault, match="is reshaped"):
        objects.send(identity, select, 0, view, objects.array(1, 2), 0)


def test_matrix_kernels_are_recorded_with_their_operands(objects: Objects) -> None:
    descriptor = objects.send(
        "MPSMatrixDescriptor",
        "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:",
        2,
        2,
        1,
        8,
        16,
        FLOAT32,
    )
    buffer = objects.send(objects.context.device, "newBufferWithLength:options:", 64, 0)
    matrix = objects.send("MPSMatrix", "alloc")
    objects.send(matrix, "initWithBuffer:offset:descriptor:", buffer, 16, descriptor)
    kernel = objects.send("MPSMatrixSolveTriangular", "alloc")
    objects.send(
        kernel,
        "initWithDevice:right:upper:transpose:unit:order:numberOfRightHandSides:alpha:",
        0,
        1,
        0,
        1,
        0,
        2,
        3,
        floats=[0.5],
    )
    encode = "encodeToCommandBuffer:sourceMatrix:rightHandSideMatrix:solutionMatrix:"
    objects.send(kernel, encode, 0, matrix, matrix, matrix)
    (run,) = objects.executor.kernels
    assert run.kernel == Descriptor(
        "MPSMatrixSolveTriangular",
        {
            "right": True,
            "upper": False,
            "transpose": True,
            "unit": False,
            "order": 2,
            "numberOfRightHandSides": 3,
            "alpha": 0.5,
        },
    )
    data = run.arguments[1].value
    assert (data.shape, data.strides, data.nbytes) == ((1, 2, 2), (4, 2, 1), 48)
