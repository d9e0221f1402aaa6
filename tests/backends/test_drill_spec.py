from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.backends.drill_spec import FAULTS, Condition, Fault, Operand, parse_drill
from scanner.errors import UsageError

HALF = Operand(dtype="float16", shape=(4, 4), contiguous=True)
FLOAT = Operand(dtype="float32", shape=(2, 3), contiguous=False)


def test_faults_conditions_and_numbers_are_read() -> None:
    spec = "abort=aten::mm, nan=aten::_softmax[dtype=float16,numel>=16]@2,slow=*"
    assert parse_drill(spec) == (
        Fault(name="abort", op="aten::mm"),
        Fault(
            name="nan",
            op="aten::_softmax",
            conditions=(
                Condition(key="dtype", relation="=", value="float16"),
                Condition(key="numel", relation=">=", value=16),
            ),
            nth=2,
        ),
        Fault(name="slow", op="*"),
    )


@given(name=st.sampled_from(sorted(FAULTS)), nth=st.integers(1, 10**6))
def test_every_fault_can_be_spelled(name: str, nth: int) -> None:
    assert parse_drill(f"{name}=aten::add.Tensor@{nth}") == (
        Fault(name=name, op="aten::add.Tensor", nth=nth),
    )


@pytest.mark.parametrize(
    ("condition", "holds_for"),
    [
        ("dtype=float16", [HALF]),
        ("shape=2x3", [FLOAT]),
        ("rank=2", [HALF, FLOAT]),
        ("numel>=16", [HALF]),
        ("numel<16", [FLOAT]),
        ("contiguous=no", [FLOAT]),
        ("shape=", []),
    ],
)
def test_conditions(condition: str, holds_for: list[Operand]) -> None:
    (fault,) = parse_drill(f"nan=aten::mm[{condition}]")
    assert [each for each in (HALF, FLOAT) if fault.concerns("aten::mm", [each])] == holds_for


def test_all_conditions_must_hold_for_one_operand() -> None:
    (fault,) = parse_drill("nan=aten::mm[dtype=float16,contiguous=no]")
    assert not fault.concerns("aten::mm", [HALF, FLOAT])


def test_a_pattern_matches_whole_names_only() -> None:
    (fault,) = parse_drill("nan=aten::_foreach_*")
    assert fault.concerns("aten::_foreach_add.List", [])
    assert not fault.concerns("aten::add.Tensor", [])
    (exact,) = parse_drill("nan=aten::add.Tensor")
    assert not exact.concerns("aten::add.Tensor_out", [])


@pytest.mark.parametrize(
    ("spec", "message", "remedy"),
    [
        ("", "no faults", "drill:abort=aten::mm"),
        ("abort", "'abort' is not FAULT=OP", "drill:abort=aten::mm"),
        ("abbort=aten::mm", "no fault 'abbort'", "Did you mean abort?"),
        ("nan=mm", "'mm' in 'nan=mm' is not a qualified op", "Write aten::mm"),
        ("nan=aten::mm@0", "counted from 1", "@2"),
        ("nan=aten::mm[dtype", "is not FAULT=OP", "drill:"),
        ("nan=aten::mm[size=3]", "condition 'size=3'", "Keys are dtype="),
        ("nan=aten::mm[dtype>=float16]", "condition 'dtype>=float16'", "only be compared with ="),
        ("nan=aten::mm[shape=2xb]", "condition 'shape=2xb'", "Write shape=2x3"),
        ("nan=aten::mm[rank=two]", "condition 'rank=two'", "Write rank=4"),
        ("nan=aten::mm[contiguous=maybe]", "condition 'contiguous=maybe'", "contiguous=yes"),
    ],
)
def test_a_bad_spec_is_quoted_with_a_remedy(spec: str, message: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_drill(spec)
    assert message in caught.value.message
    assert remedy in caught.value.remedy
