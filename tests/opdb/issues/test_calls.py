from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opdb.issues.calls import SpellingError, read_call
from scanner.records import OpCall, TensorSpec


def test_tensors_and_attributes() -> None:
    assert read_call(
        "addmm.out(self=float16[2,3].strides(1,2).offset(5), beta=1, dtype=int64)"
    ) == (
        OpCall(
            op="aten::addmm.out",
            phase="forward",
            inputs=(
                TensorSpec(name="self", dtype="float16", shape=(2, 3), stride=(1, 2), offset=5),
            ),
            attributes={"beta": 1, "dtype": "int64"},
        )
    )


def test_lists_of_tensors_are_flattened() -> None:
    call = read_call("cat(tensors=[bool[2], int8[()]], dim=-1) >> uint8[3]")
    assert [(spec.name, spec.dtype, spec.shape) for spec in call.inputs] == [
        ("tensors[0]", "bool", (2,)),
        ("tensors[1]", "int8", ()),
    ]
    assert call.outputs[0].shape == (3,)
    assert call.attributes == {"dim": -1}


def test_a_list_with_gaps_keeps_places() -> None:
    call = read_call("index.Tensor(self=float32[4,4], indices=[None, int64[2]])")
    assert [spec.name for spec in call.inputs] == ["self", "indices[1]"]


def test_channels_last_strides() -> None:
    (spec,) = read_call("relu(self=float32[2,3,4,5].channels_last)").inputs
    assert spec.stride == (60, 1, 15, 3)


def test_phase_place_and_alias() -> None:
    call = read_call('mul_(self=float32[2], other=float32[2].alias(0).on_cpu).during("backward")')
    assert call.phase == "backward"
    assert (call.inputs[1].alias, call.inputs[1].device) == (0, "cpu")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "relu",
        "relu(float32[2])",
        "relu(self=float32[2]",
        "relu(self=float32[2].strides(1,2))",
        "relu(self=float32[2].turned)",
        "relu(self=1 + 1)",
        "relu(**more)",
        'relu(self=float32[2]).during("lunch")',
        "relu(self=float32[2]) >> 3",
    ],
)
def test_what_is_no_configuration(text: str) -> None:
    with pytest.raises(SpellingError):
        read_call(text)


@given(st.lists(st.integers(0, 9), max_size=5))
def test_row_major_strides(shape: list[int]) -> None:
    (spec,) = read_call(f"relu(self=float32[{tuple(shape)}])").inputs
    assert spec.shape == tuple(shape)
    for dim, step in enumerate(spec.stride[:-1]):
        assert step == spec.stride[dim + 1] * shape[dim + 1]
