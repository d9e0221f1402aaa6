"""The `--args` language."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.errors import UsageError
from scanner.locate.spec import TensorInput
from scanner.sim.study.arguments import TensorValues, known_dtype, parse_arguments


def tensor(*shape: int, dtype: str = "float32", **other: Any) -> TensorInput:
    return TensorInput(shape=shape, dtype=dtype, **other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2x3", tensor(2, 3, dtype="bfloat16")),
        ("3:half", tensor(3, dtype="float16")),
        ("0x3:int64", tensor(0, 3, dtype="int64")),
        ("scalar", tensor(dtype="bfloat16")),
        ("4:float32[-1,1]", tensor(4, low=-1.0, high=1.0)),
        ("4:int64[0,9]@cpu", tensor(4, dtype="int64", low=0, high=9, on_host=True)),
        ("float32[0, -1.5, inf]", TensorValues("float32", (0, -1.5, math.inf))),
        ("int64[[1,2],[3,4]]", TensorValues("int64", ((1, 2), (3, 4)))),
        ("bool[True,False]", TensorValues("bool", (True, False))),
        ("complex64[1+2j]", TensorValues("complex64", (1 + 2j,))),
        ("float32[]", TensorValues("float32", ())),
        ("3", 3),
        ("-0.5", -0.5),
        ("1e-3", 1e-3),
        ("-inf", -math.inf),
        ("2j", 2j),
        ("True", True),
        ("None", None),
        ("channels_last", "channels_last"),
        ('"a, b"', "a, b"),
        ("[]", []),
        ("[1, 2,3]", [1, 2, 3]),
        ("[2x2:float32,None]", [tensor(2, 2), None]),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse_arguments(text, "bfloat16") == ((None, value),)


def test_names_follow_positions() -> None:
    found = parse_arguments(" 2x2 , 1, dim=-1 ,keepdim=True")
    assert [name for name, _ in found] == [None, None, "dim", "keepdim"]
    assert parse_arguments("") == parse_arguments("  ") == ()


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("4x:float32", 3, "expected a size after the x"),
        ("2x2:flot32", 5, "did you mean float32"),
        ("2x2,", 5, "expected a tensor such as"),
        ("dim=1,2", 7, "a positional input cannot follow a named one"),
        ("a=1,a=2", 5, "a is given twice"),
        ("[1,2", 5, 'expected "," or "]"'),
        ("int64[1.5]", 7, "expected a value of int64"),
        ("float32[[1],[2,3]]", 8, "rows of a tensor must be of one length"),
        ("3 4", 3, 'expected "," before the next input'),
        ("float32[1", 10, 'expected "," or "]"'),
        ("?", 1, "expected a tensor such as"),
    ],
)
def test_a_mistake_is_pointed_at(text: str, at: int, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arguments(text)
    said, echoed, caret = caught.value.message.split("\n")
    assert said.startswith(f"--args, character {at}: ")
    assert problem in said
    assert (echoed.strip(), caret.index("^")) == (text.strip(), 2 + at - 1)
    assert "--args" in caught.value.remedy


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.sampled_from(["float16", "channels_last", "mean"]),
)


@given(st.lists(st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=6)))
def test_what_is_written_is_read(values: list[Any]) -> None:
    def spelt(value: Any) -> str:
        return f"[{','.join(map(spelt, value))}]" if isinstance(value, list) else str(value)

    text = ",".join(map(spelt, values))
    assert [value for _, value in parse_arguments(text)] == values


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_arguments(text)
    except UsageError:
        return


def test_dtypes_by_name() -> None:
    assert known_dtype("half") == "float16"
    with pytest.raises(UsageError, match="no dtype flat32") as caught:
        known_dtype("flat32")
    assert "float32" in caught.value.remedy
