from __future__ import annotations

import pytest

from opdb.issues.calls import read_call
from opdb.issues.condition import ConditionError, holds, names_in, vocabulary
from scanner.records import Target

TARGET = Target(framework="torch", version="2.9.1", ram=16)


def check(condition: str, call: str, target: Target = TARGET) -> bool:
    return holds(condition, vocabulary(read_call(call), target, {"LIMIT": 65536}))


@pytest.mark.parametrize(
    ("condition", "hit", "miss"),
    [
        ("self.rank > 4", "relu(self=float32[1,1,1,1,1])", "relu(self=float32[1])"),
        ("self.shape[-1] % 2 == 1", "relu(self=float32[2,3])", "relu(self=float32[3,2])"),
        ("self.numel > 2**32", "relu(self=int8[65536,65537])", "relu(self=int8[65536,65536])"),
        ("self.nbytes >= 2**31", "relu(self=float32[2**9])", "relu(self=float32[4])"),
        ("self.contiguous", "relu(self=float32[2,3])", "relu(self=float32[2,3].strides(1,2))"),
        ("self.transposed", "relu(self=float32[2,3].strides(1,2))", "relu(self=float32[2,3])"),
        ("self.dense", "relu(self=float32[2,3].strides(1,2))", "relu(self=float32[2].strides(2))"),
        ("self.expanded", "relu(self=float32[2,3].strides(0,1))", "relu(self=float32[1,3])"),
        (
            "self.channels_last",
            "relu(self=float32[2,3,4,5].channels_last)",
            "relu(self=float32[2,3,4,5])",
        ),
        (
            "self.reach == 10",
            "relu(self=int8[2,3].strides(4,1).offset(3))",
            "relu(self=int8[10,0])",
        ),
        ("self.offset != 0", "relu(self=float32[2].offset(1))", "relu(self=float32[2])"),
        ("self.is_half", "relu(self=bfloat16[2])", "relu(self=float32[2])"),
        ("out.shape[0] > LIMIT", "f(self=int8[1]) >> int8[65537]", "f(self=int8[1]) >> int8[2]"),
        (
            "self.dtype != other.dtype",
            "mul(self=float16[2], other=float32[2])",
            "mul(self=float16[2], other=float16[2])",
        ),
        (
            "broadcast(self, other) == self.shape",
            "mul(self=float32[2,3], other=float32[3])",
            "mul(self=float32[3], other=float32[2,3])",
        ),
        (
            "same(self, other)",
            "mul(self=float32[2], other=float32[2].alias(0))",
            "mul(self=float32[2], other=float32[2])",
        ),
        ("inplace", "mul_(self=float32[2], other=2)", "mul(self=float32[2], other=2)"),
        (
            "any(t.rank == 0 for t in inputs)",
            "cat(tensors=[float32[2], float32[()]])",
            "cat(tensors=[float32[2]])",
        ),
        (
            "any(t.shape[0] == 0 for t in tensors)",
            "cat(tensors=[float32[2], float32[0]])",
            "cat(tensors=[float32[2]])",
        ),
        (
            'mode == "bilinear" and align',
            'resize(self=float32[1], mode="bilinear", align=True)',
            'resize(self=float32[1], mode="bilinear", align=False)',
        ),
        (
            'phase == "optimizer"',
            'mul(self=float32[2]).during("optimizer")',
            "mul(self=float32[2])",
        ),
    ],
)
def test_each_word(condition: str, hit: str, miss: str) -> None:
    hit = hit.replace("2**9", str(2**29))
    assert check(condition, hit)
    assert not check(condition, miss)


def test_what_the_call_lacks_is_none_and_its_properties_make_no_match() -> None:
    assert check("weight is None", "norm(self=float32[2])")
    assert not check("weight.rank > 1", "norm(self=float32[2])")
    assert not check("weight > 1", "norm(self=float32[2])")
    assert not check("self.shape[4] == 1", "norm(self=float32[2])")


def test_the_targets_environment() -> None:
    with_variable = Target(framework="torch", version="2.9.1", fallback=True)
    assert check("fallback", "relu(self=float32[1])", with_variable)
    assert check("not fallback and ram == 16", "relu(self=float32[1])")


def test_no_condition_always_holds() -> None:
    assert check("", "relu(self=float32[1])")


@pytest.mark.parametrize("text", ["self.rank >", "a = 1", "a; b", "__import__('os')", "open('f')"])
def test_what_is_not_of_the_language(text: str) -> None:
    with pytest.raises(ConditionError):
        check(text, "relu(self=float32[1])")


def test_names_that_the_op_must_have() -> None:
    condition = "any(t.rank for t in tensors) and self.rank and out and max(dim) and LIMIT"
    assert names_in(condition) == {"tensors", "self", "dim", "LIMIT"}
