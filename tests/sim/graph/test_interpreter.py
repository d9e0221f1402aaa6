from __future__ import annotations

import msgspec
import pytest
import torch

from scanner.sim.executors import Done, NotExecutable
from scanner.sim.graph.interpreter import Interpreter
from scanner.sim.graph.recording import Constant, Graph, GraphRun, Placeholder, Ref, TensorType
from tests.sim.graph.runs import add, data, op, placeholder, run, scalar

SQUARE = "squareWithTensor:name:"
CAST = "castTensor:toType:name:"


def test_feeds_constants_and_results() -> None:
    x, out = torch.tensor([1.0, 2.0]), torch.zeros(2)
    nodes = (placeholder(1, x), scalar(2, 0.5), add(1, 2, to=3))
    assert run(nodes, {1: x}, {3: out}) == Done()
    assert out.tolist() == [1.5, 2.5]


def test_constants_with_content() -> None:
    content = torch.tensor([1, -2], dtype=torch.int32).numpy().tobytes()
    constant = Constant(1, TensorType((2, 1), "int32"), data=content)
    out = torch.zeros(2, 1, dtype=torch.int32)
    assert run((constant,), {}, {1: out}) == Done()
    assert out.tolist() == [[1], [-2]]


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [("bool", 2.0, True), ("int32", float("inf"), 2**31 - 1), ("complex64", 1 + 2j, 1 + 2j)],
)
def test_scalar_constants_are_of_their_type(dtype: str, number: complex, expected: object) -> None:
    out = torch.zeros((), dtype=getattr(torch, dtype))
    assert run((scalar(1, number, dtype),), {}, {1: out}) == Done()
    assert out.item() == expected


def test_strides_of_feeds_and_results() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    assert data(x).strides == (1, 3)
    out = torch.zeros(2, 3).t()
    assert run((placeholder(1, x), op(SQUARE, Ref(1), to=2)), {1: x}, {2: out}) == Done()
    assert out.tolist() == [[0, 9], [1, 16], [4, 25]]


def test_an_expanded_feed_is_read_once_for_each_element() -> None:
    x = torch.tensor([1.0, 2.0]).expand(3, 2)
    out = torch.zeros(3, 2)
    assert run((placeholder(1, x), op(SQUARE, Ref(1), to=2)), {1: x}, {2: out}) == Done()
    assert out.tolist() == [[1, 4]] * 3


def test_everything_is_read_before_anything_is_written() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    other = torch.zeros(3)
    reverse = op("reverseTensor:axes:name:", Ref(1), (0,), to=2)
    identity = op("identityWithTensor:name:", Ref(1), to=3)
    nodes = (placeholder(1, x), reverse, identity)
    assert run(nodes, {1: x}, {2: x, 3: other}) == Done()
    assert (x.tolist(), other.tolist()) == ([3, 2, 1], [1, 2, 3])


def test_one_element_fills_the_destination() -> None:
    x, out = torch.tensor([7.0]), torch.zeros(2, 3)
    nodes = (placeholder(1, x), op("identityWithTensor:name:", Ref(1), to=2))
    assert run(nodes, {1: x}, {2: out}) == Done()
    assert out.tolist() == [[7] * 3] * 2


def test_what_no_result_needs_is_not_computed() -> None:
    x, out = torch.tensor([1.0]), torch.zeros(1)
    unused = op("noSuchMethod:name:", Ref(1), to=2)
    assert run((placeholder(1, x), unused, op(SQUARE, Ref(1), to=3)), {1: x}, {3: out}) == Done()


def test_several_outputs() -> None:
    x = torch.arange(4.0)
    out = torch.zeros(2)
    halves = op("splitTensor:numSplits:axis:name:", Ref(1), 2, 0, to=(2, 3))
    assert run((placeholder(1, x), halves), {1: x}, {3: out}) == Done()
    assert out.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("noSuchMethod:name:", "MPSGraph's noSuchMethod:name: is not modelled"),
        ("exponentWithTensor:name:", "exponentWithTensor:name: of int32"),
        ("squeezeTensor:axis:name:", "squeezeTensor:axis:name: axis 4 of a tensor of rank 1"),
    ],
)
def test_a_refusal_names_the_method(selector: str, reason: str) -> None:
    x, out = torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.int32)
    rest = (4,) if "axis" in selector else ()
    answer = run((placeholder(1, x), op(selector, Ref(1), *rest, to=2)), {1: x}, {2: out})
    assert answer == NotExecutable(reason)
    assert out.tolist() == [1, 1]


def test_nothing_is_promoted() -> None:
    x, y = torch.ones(1), torch.ones(1, dtype=torch.int32)
    answer = run((placeholder(1, x), placeholder(2, y), add(1, 2, to=3)), {1: x, 2: y}, {3: x})
    assert isinstance(answer, NotExecutable)
    assert answer.reason.endswith("of different types: float32, int32")


def test_failures_of_torch_are_refusals() -> None:
    x, out = torch.ones(3), torch.ones(3)
    nodes = (placeholder(1, x), op("reshapeTensor:withShape:name:", Ref(1), (2,), to=2))
    answer = run(nodes, {1: x}, {2: out})
    assert isinstance(answer, NotExecutable)
    assert "reshapeTensor:withShape:name: RuntimeError: shape '[2]' is invalid" in answer.reason


def test_places_of_elements_go_to_wider_destinations() -> None:
    x, out = torch.tensor([3.0, -1, 2]), torch.empty(3, dtype=torch.int64)
    nodes = (placeholder(1, x), op("argSortWithTensor:axis:name:", Ref(1), 0, to=2))
    assert run(nodes, {1: x}, {2: out}) == Done()
    assert out.tolist() == [1, 2, 0]


def test_bfloat16_destinations_round() -> None:
    x, out = torch.tensor([257.0]), torch.zeros(1, dtype=torch.bfloat16)
    nodes = (placeholder(1, x), op("identityWithTensor:name:", Ref(1), to=2))
    assert run(nodes, {1: x}, {2: out}) == Done()
    assert out.item() == 256


def test_destinations_of_another_type_or_size() -> None:
    x = torch.ones(3)
    nodes = (placeholder(1, x), op(SQUARE, Ref(1), to=2))
    assert run(nodes, {1: x}, {2: torch.ones(3, dtype=torch.float16)}) == NotExecutable(
        "a result of float32 for a destination of float16"
    )
    assert run(nodes, {1: x}, {2: torch.ones(2)}) == NotExecutable(
        "a result of shape [3] for a destination of shape [2]"
    )
    assert run(nodes, {}, {2: x}) == NotExecutable("the placeholder input 1 is not fed")
    assert run(nodes, {1: x}, {9: x}) == NotExecutable("the graph has no value 9")


def test_memory_is_not_left() -> None:
    x = torch.ones(4)
    short = msgspec.structs.replace(data(x), nbytes=15)
    made = GraphRun(Graph((placeholder(1, x),)), ((1, short),), ((1, data(x)),))
    assert Interpreter().run(made) == NotExecutable("16 bytes are touched where 15 are bound")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_method_rounds_to_its_type(dtype: torch.dtype) -> None:
    """In float16, 2048 + 1 = 2048 (ties to even); adding 1 again changes nothing."""
    big = 2048.0 if dtype == torch.float16 else 256.0
    x, out = torch.tensor([big], dtype=dtype), torch.zeros(1, dtype=dtype)
    one = scalar(2, 1.0, str(dtype).removeprefix("torch."))
    nodes = (placeholder(1, x), one, add(1, 2, to=3), add(3, 2, to=4))
    assert run(nodes, {1: x}, {4: out}) == Done()
    assert out.item() == big


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_types_that_torch_hardly_knows_wrap(name: str) -> None:
    x = torch.tensor([torch.iinfo(getattr(torch, name)).max], dtype=getattr(torch, name))
    out = torch.ones(1, dtype=x.dtype)
    assert run((placeholder(1, x), scalar(2, 1, name), add(1, 2, to=3)), {1: x}, {3: out}) == Done()
    assert out.item() == 0


def test_types_of_values_before_a_run() -> None:
    x = torch.zeros(2, 3)
    shape = op("shapeOfTensor:name:", Ref(1), to=2)
    ramp = op("coordinateAlongAxis:withShapeTensor:name:", 1, Ref(2), to=3)
    graph = Graph((placeholder(1, x), shape, ramp, op(CAST, Ref(3), "float16", to=4)))
    assert Interpreter().infer(graph, 2) == TensorType((2,), "int32")
    assert Interpreter().infer(graph, 4) == TensorType((2, 3), "float16")


def test_types_that_only_content_tells_are_tried_with_zeros() -> None:
    """A meta tensor has no content, a constant has."""
    size = Constant(2, TensorType((1,), "int32"), data=(4).to_bytes(4, "little"))
    wide = op("reshapeTensor:withShapeTensor:name:", Ref(1), Ref(2), to=3)
    graph = Graph((placeholder(1, torch.zeros(2, 2)), size, wide))
    assert Interpreter().infer(graph, 3) == TensorType((4,), "float32")


@pytest.mark.parametrize("shape", [None, (-1, 2)])
def test_types_that_are_not_known(shape: tuple[int, ...] | None) -> None:
    source = Placeholder(1, TensorType(shape, "float32"))
    assert Interpreter().infer(Graph((source, op(SQUARE, Ref(1), to=2))), 2) is None
    assert Interpreter().infer(Graph((op("noSuchMethod:name:", 3, to=2),)), 2) is None


def test_empty_tensors() -> None:
    x, out = torch.zeros(0, 3), torch.ones(3)
    total = op("reductionSumWithTensor:axes:name:", Ref(1), (0,), to=2)
    assert run((placeholder(1, x), total), {1: x}, {2: out}) == Done()
    assert out.tolist() == [0, 0, 0]
