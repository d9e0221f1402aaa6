"""Describing what was rebuilt gives the configuration it was rebuilt from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.capture import describe
from scanner.probe.attempt import on_device
from scanner.probe.execute import run_case
from scanner.probe.inputs import captured, drawn
from scanner.probe.rebuild import Unbuildable, bind
from scanner.probe.schema import schema_of
from scanner.records import OpCall, TensorSpec
from tests.probe.num_support import call, spec


def described(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpCall:
    """A configuration as the capture would write it, the CPU standing in for the target."""
    func = schema_of(op).func
    arguments = describe.schema_arguments(func, args, kwargs)
    named = [pair for name, value in arguments.items() for pair in describe.tensors_in(name, value)]
    first: dict[int, int] = {}
    specs = []
    for position, (name, tensor) in enumerate(named):
        alias = first.setdefault(tensor.untyped_storage().data_ptr() or -position, position)
        known = alias if alias < position else None
        specs.append(describe.tensor_spec(name, tensor, host=False, alias=known))
    attributes = {
        name: describe.attribute(value)
        for name, value in arguments.items()
        if not any(True for _ in describe.tensors_in(name, value))
    }
    return OpCall(op=op, phase="forward", inputs=tuple(specs), attributes=attributes)


def rebuilt(configuration: OpCall) -> OpCall:
    schema = schema_of(configuration.op)
    operands = drawn(schema, configuration, 0)
    bound = bind(schema, configuration, operands.tensors, "cpu")
    return described(configuration.op, bound.args, bound.kwargs)


@st.composite
def views(draw: st.DrawFn) -> Tensor:
    """A view of a storage: permuted, sliced, expanded, overlapping, at an offset."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool]))
    tensor = torch.zeros([size + 2 for size in shape], dtype=dtype)
    for dim, size in enumerate(shape):
        step = draw(st.integers(1, 2)) if size else 1
        start = draw(st.integers(0, 1))
        tensor = tensor.narrow(dim, start, min(size, tensor.shape[dim] - start))
        tensor = tensor[(slice(None),) * dim + (slice(None, None, step),)]
    tensor = tensor.permute(draw(st.permutations(range(tensor.dim()))))
    if tensor.dim() and tensor.shape[0] == 1:
        tensor = tensor.expand(3, *tensor.shape[1:])
    if tensor.dim() and tensor.shape[-1] > 2 and draw(st.booleans()):
        tensor = tensor.unfold(-1, 2, 1)
    return tensor


@settings(max_examples=150, deadline=None)
@given(views())
def test_any_view_round_trips(tensor: Tensor) -> None:
    configuration = described("aten::abs", (tensor,), {})
    assert rebuilt(configuration) == configuration


@settings(max_examples=60, deadline=None)
@given(views())
def test_uploading_keeps_the_layout(tensor: Tensor) -> None:
    configuration = described("aten::abs", (tensor,), {})
    operands = drawn(schema_of("aten::abs"), configuration, 0)
    (there,), _ = on_device(CpuDevice(), configuration, operands)
    assert described("aten::abs", (there,), {}) == configuration
    assert torch.equal(there.nan_to_num(), operands.tensors[0].nan_to_num())


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("aten::add.Tensor", (torch.ones(2, 3), torch.ones(3)), {"alpha": 2.5}),
        ("aten::cat", ([torch.ones(2), torch.ones(3)], 0), {}),
        ("aten::cat", ([], 0), {}),
        ("aten::clamp", (torch.ones(2), float("-inf"), None), {}),
        ("aten::fill.Scalar", (torch.ones(2, dtype=torch.complex64), 1 + 2j), {}),
        (
            "aten::_to_copy",
            (torch.ones(2),),
            {"dtype": torch.float16, "device": torch.device("cpu")},
        ),
        ("aten::empty_like", (torch.ones(2),), {"memory_format": torch.preserve_format}),
        ("aten::native_layer_norm", (torch.ones(2, 3), [3], None, None, 1e-5), {}),
        ("aten::sum.dim_IntList", (torch.ones(2, 3), [0], True), {"dtype": torch.float64}),
        ("aten::div.Tensor_mode", (torch.ones(2), torch.ones(2)), {"rounding_mode": "floor"}),
    ],
)
def test_attributes_round_trip(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    configuration = described(op, args, kwargs)
    assert rebuilt(configuration) == configuration


def test_a_dtype_may_be_given_by_its_number() -> None:
    configuration = call("aten::randint", high=5, size=[2], dtype=4, device="mps")
    assert bind(schema_of("aten::randint"), configuration, (), "cpu").kwargs["dtype"] == torch.int64


def test_a_number_may_stand_for_a_tensor() -> None:
    configuration = call("aten::mul.Tensor", spec(shape=(2,)), other=2.5)
    operands = drawn(schema_of(configuration.op), configuration, 0)
    assert bind(schema_of(configuration.op), configuration, operands.tensors, "cpu").args[1] == 2.5
    assert run_case(configuration, CpuDevice()).status == "native"


def test_a_gap_in_a_list_of_indices_stays_a_gap() -> None:
    configuration = call(
        "aten::index.Tensor", spec("self", (4, 5)), spec("indices[1]", (3,), "int64")
    )
    operands = drawn(schema_of(configuration.op), configuration, 0)
    bound = bind(schema_of(configuration.op), configuration, operands.tensors, "cpu")
    assert bound.args[1][0] is None
    assert schema_of(configuration.op).func(*bound.args).shape == (4, 3)


def test_arguments_that_alias_share_a_storage() -> None:
    configuration = call("aten::mul_.Tensor", spec("self"), spec("other", alias=0))
    first, second = drawn(schema_of(configuration.op), configuration, 0).tensors
    assert first.data_ptr() == second.data_ptr()
    assert rebuilt(configuration).inputs[1].alias == 0


def test_parts_of_one_storage_keep_their_places() -> None:
    left = spec("self", (2, 2), stride=(4, 1))
    right = spec("other", (2, 2), stride=(4, 1), offset=2, alias=0)
    first, second = drawn(
        schema_of("aten::mul.Tensor"), call("aten::mul.Tensor", left, right), 0
    ).tensors
    assert second.data_ptr() - first.data_ptr() == 8
    assert bool(first.isfinite().all())
    assert bool(second.isfinite().all())


def test_memory_between_elements_holds_what_a_kernel_should_never_read() -> None:
    strided = spec("self", (3,), stride=(2,), offset=1)
    (storage,) = drawn(schema_of("aten::abs"), call("aten::abs", strided), 0).storages
    assert storage.isnan().tolist() == [True, False, True, False, True, False]


def test_values_of_the_step_are_used_as_they_are() -> None:
    expanded = spec("self", (3, 2), stride=(0, 1))
    overlapping = spec("self", (3, 2), stride=(1, 1))
    row = torch.tensor([1.0, 2.0]).expand(3, 2)
    windows = torch.tensor([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1)
    assert torch.equal(captured(call("aten::abs", expanded), [row]).tensors[0], row)
    assert torch.equal(captured(call("aten::abs", overlapping), [windows]).tensors[0], windows)


def test_a_view_in_another_dtype_reads_the_same_bytes() -> None:
    inputs = spec("self", (4,), "float32"), spec("other", (2,), "complex64", alias=0)
    first, second = drawn(
        schema_of("aten::mul.Tensor"), call("aten::mul.Tensor", *inputs), 0
    ).tensors
    assert torch.equal(torch.view_as_real(second).reshape(-1), first)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_sparse_tensors_keep_their_layout(layout: str) -> None:
    sparse = TensorSpec(name="self", dtype="float32", shape=(4, 5), stride=(), layout=layout)
    (tensor,) = drawn(schema_of("aten::abs"), call("aten::abs", sparse), 0).tensors
    assert str(tensor.layout) == f"torch.{layout}"
    assert 0 < tensor._nnz() < 20


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (call("aten::abs", spec(dtype="float3")), "float3"),
        (call("aten::mm", spec("self")), "mat2"),
        (
            call(
                "aten::abs",
                TensorSpec(name="self", dtype="float32", shape=(2,), stride=(), layout="jagged"),
            ),
            "jagged",
        ),
    ],
)
def test_what_cannot_be_rebuilt_says_why(configuration: OpCall, reason: str) -> None:
    schema = schema_of(configuration.op)
    with pytest.raises(Unbuildable, match=reason):
        bind(schema, configuration, drawn(schema, configuration, 0).tensors, "cpu")
