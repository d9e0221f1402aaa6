"""Which rule judges which op."""

from __future__ import annotations

import pytest
import torch

from scanner.probe.schema import schema_of
from scanner.probe.standards import (
    CONTRACTION,
    POINTWISE,
    private_outputs,
    rounds,
    standard_of,
)
from scanner.records import OpCall
from tests.probe.num_support import call, spec


def kind(configuration: OpCall) -> str:
    return standard_of(schema_of(configuration.op), configuration).kind


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("aten::view", "exact"),
        ("aten::permute", "exact"),
        ("aten::gather", "exact"),
        ("aten::relu", "exact"),
        ("aten::sort", "exact"),
        ("aten::argmax", "exact"),
        ("aten::t_copy", "exact"),
        ("aten::exp", "pointwise"),
        ("aten::gelu", "pointwise"),
        ("aten::_foreach_mul_.Scalar", "pointwise"),
        ("aten::remainder.Tensor", "stepped"),
        ("aten::mm", "contraction"),
        ("aten::convolution", "contraction"),
        ("aten::native_layer_norm", "contraction"),
        ("aten::sum.dim_IntList", "reduction"),
        ("aten::_softmax", "reduction"),
        ("aten::_linalg_eigh", "linalg"),
        ("aten::normal_", "random"),
        ("aten::native_dropout", "random"),
        ("aten::randperm", "random"),
        ("aten::empty.memory_format", "undefined"),
        ("aten::new_empty", "undefined"),
    ],
)
def test_class_by_op(op: str, expected: str) -> None:
    assert kind(call(op, spec())) == expected


@pytest.mark.parametrize(
    ("op", "attributes", "expected"),
    [
        ("aten::div.Tensor_mode", {"rounding_mode": None}, "pointwise"),
        ("aten::div.Tensor_mode", {"rounding_mode": "floor"}, "stepped"),
        ("aten::native_dropout", {"p": 0.5, "train": True}, "random"),
        ("aten::native_dropout", {"p": 0.5, "train": False}, "contraction"),
        ("aten::scaled_dot_product_attention", {"dropout_p": 0.0}, "contraction"),
        ("aten::scaled_dot_product_attention", {"dropout_p": 0.1}, "random"),
        ("aten::bernoulli.p", {"p": 0.0}, "random"),
        ("aten::index_put", {"accumulate": False}, "exact"),
        ("aten::index_put", {"accumulate": True}, "contraction"),
        ("aten::_to_copy", {"dtype": None}, "exact"),
        ("aten::_to_copy", {"dtype": "float16"}, "contraction"),
        ("aten::round.decimals", {"decimals": 0}, "exact"),
        ("aten::round.decimals", {"decimals": 2}, "stepped"),
    ],
)
def test_class_by_attributes(op: str, attributes: dict[str, object], expected: str) -> None:
    assert kind(call(op, spec(), **attributes)) == expected


def test_magnitudes_of_complex_numbers_are_rounded() -> None:
    assert kind(call("aten::abs", spec())) == "exact"
    assert kind(call("aten::abs", spec(dtype="complex64"))) == "pointwise"


def test_every_op_has_a_class() -> None:
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    classes = {kind(call(name)) for name in names}
    assert len(names) > 2500
    assert classes == {
        *("exact", "pointwise", "stepped", "contraction"),
        *("reduction", "linalg", "random", "undefined"),
    }


def test_tables_name_ops_that_exist() -> None:
    from scanner.probe import families

    names = torch._C._dispatch_get_all_op_names()
    known = {schema_of(name).family for name in names if name.startswith("aten::")}
    tables = (
        families.EXACT,
        families.STEPPED,
        families.REDUCTION,
        families.LINALG,
        families.UNDEFINED,
        families.RANDOM,
        families.PRIVATE_OUTPUTS,
    )
    assert not {name for table in tables for name in table} - known


@pytest.mark.parametrize(
    ("dtype", "fields"),
    [
        (torch.float32, "single"),
        (torch.complex64, "single"),
        (torch.float16, "half"),
        (torch.bfloat16, "brain"),
        (torch.float8_e5m2, "brain"),
        (torch.float64, "double"),
        (torch.complex128, "double"),
    ],
)
def test_allowance_by_dtype(dtype: torch.dtype, fields: str) -> None:
    assert CONTRACTION.allowance(dtype) is getattr(CONTRACTION, fields)
    assert POINTWISE.allowance(dtype) is getattr(POINTWISE, fields)


def test_where_a_last_bit_counts() -> None:
    for op, expected in {"aten::mm": True, "aten::cat": False, "aten::normal_": False}.items():
        assert rounds(schema_of(op), call(op, spec())) is expected


def test_a_batch_norm_saves_statistics_in_training_only() -> None:
    schema = schema_of("aten::native_batch_norm")
    assert private_outputs(schema, call("aten::native_batch_norm", training=True)) == frozenset()
    assert private_outputs(schema, call("aten::native_batch_norm", training=False)) == {"1", "2"}
