"""The `--inputs` language."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.errors import UsageError
from scanner.locate.spec import (
    DTYPES,
    Group,
    InputSpec,
    Literal,
    TensorInput,
    Value,
    format_inputs,
    parse_inputs,
)


def one(text: str) -> Value:
    ((_, value),) = parse_inputs(text).items
    return value


def test_the_documented_example() -> None:
    assert parse_inputs("x=1x3x224x224:float32,ids=2x128:int64[0,50257]") == InputSpec(
        (
            ("x", TensorInput(shape=(1, 3, 224, 224))),
            ("ids", TensorInput(shape=(2, 128), dtype="int64", low=0, high=50257)),
        )
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:float32", TensorInput(shape=(1,))),
        ("16", TensorInput(shape=(16,))),
        ("2x3", TensorInput(shape=(2, 3))),
        ("0x3", TensorInput(shape=(0, 3))),
        ("scalar:float64", TensorInput(shape=(), dtype="float64")),
        ("scalar", TensorInput(shape=())),
        ("2:half", TensorInput(shape=(2,), dtype="float16")),
        ("2:float", TensorInput(shape=(2,), dtype="float32")),
        ("2:double", TensorInput(shape=(2,), dtype="float64")),
        ("2:long", TensorInput(shape=(2,), dtype="int64")),
        ("2:int", TensorInput(shape=(2,), dtype="int32")),
        ("2:bf16", TensorInput(shape=(2,), dtype="bfloat16")),
        ("2:bool", TensorInput(shape=(2,), dtype="bool")),
        ("2:complex64", TensorInput(shape=(2,), dtype="complex64")),
        ("2:int64[-3,4]", TensorInput(shape=(2,), dtype="int64", low=-3, high=4)),
        ("2:float32[0,1]", TensorInput(shape=(2,), low=0.0, high=1.0)),
        ("2:float32[-1e-3, .5]", TensorInput(shape=(2,), low=-0.001, high=0.5)),
        ("2:int64[1,9]@cpu", TensorInput(shape=(2,), dtype="int64", low=1, high=9, on_host=True)),
        ("True", Literal(True)),
        ("None", Literal(None)),
        ("int(4)", Literal(4)),
        ("float(0.5)", Literal(0.5)),
        ("(2:bool,3)", Group((TensorInput(shape=(2,), dtype="bool"), TensorInput(shape=(3,))))),
        ("[2,]", Group((TensorInput(shape=(2,)),), is_list=True)),
        (" 2x3 : float32 [ 0 , 1 ] ", TensorInput(shape=(2, 3), low=0.0, high=1.0)),
    ],
)
def test_values(text: str, value: Value) -> None:
    assert one(text) == value


def test_positional_before_named() -> None:
    assert [name for name, _ in parse_inputs("1x2, y=3, z=4").items] == [None, "y", "z"]


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a shape"),
        ("x=", 3, "expected a shape"),
        ("x=axb", 3, "expected a shape"),
        ("1x3x:float32", 5, "expected a size after the x"),
        ("x=1x3:flaot32", 7, "did you mean float32?"),
        ("x=1x3:", 7, "expected a dtype"),
        ("x=1x3 y=2", 7, 'expected ","'),
        ("1,", 3, "expected a shape"),
        ("x=1,2", 5, "a positional input cannot follow a named one"),
        ("x=1,x=2", 5, "x is given twice"),
        ("2:int64[0,", 11, "expected a number"),
        ("2:int64[0]", 10, 'expected ","'),
        ("2:int64[0,1.5]", 11, "integer ends"),
        ("2:int64[5,5]", 8, "a range must end above its start"),
        ("2:int64[5,4]", 8, "a range must end above its start"),
        ("2:bool[0,1]", 7, "bool takes no range"),
        ("(1,2", 5, 'expected "," or ")"'),
        ("int(a)", 5, "expected int value"),
        ("2:int64@gpu", 9, 'expected "cpu"'),
        ("99999999999999999999", 1, "a size is too large"),
        ("-1x2", 1, "expected a shape"),
    ],
)
def test_errors_point_at_the_place(text: str, column: int, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_inputs(text)
    heading, shown, caret = caught.value.message.split("\n")
    assert heading.startswith(f"--inputs, character {column}: ")
    assert problem in heading
    assert shown == f"  {text}"
    assert caret == " " * (column + 1) + "^"
    assert "for example" in caught.value.remedy


def ranges(dtype: str) -> st.SearchStrategy[tuple[int | float | None, int | float | None]]:
    if dtype == "bool" or dtype.startswith("complex"):
        return st.just((None, None))
    numbers: st.SearchStrategy[int] | st.SearchStrategy[float] = st.integers(-(10**9), 10**9)
    if "int" not in dtype:
        numbers = st.floats(-1e9, 1e9)
    pairs = st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1])
    return st.just((None, None)) | pairs


@st.composite
def tensors(draw: st.DrawFn) -> TensorInput:
    dtype = draw(st.sampled_from(DTYPES))
    low, high = draw(ranges(dtype))
    shape = tuple(draw(st.lists(st.integers(0, 10**6), max_size=5)))
    return TensorInput(shape=shape, dtype=dtype, low=low, high=high, on_host=draw(st.booleans()))


literals = st.builds(
    Literal,
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
)
values = st.recursive(
    tensors() | literals,
    lambda inner: st.builds(
        Group, st.lists(inner, min_size=1, max_size=3).map(tuple), st.booleans()
    ),
    max_leaves=5,
)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def specs(draw: st.DrawFn) -> InputSpec:
    positional = [(None, value) for value in draw(st.lists(values, max_size=3))]
    named = draw(st.dictionaries(names, values, min_size=0 if positional else 1, max_size=3))
    return InputSpec((*positional, *named.items()))


@given(specs())
def test_formatting_round_trips(spec: InputSpec) -> None:
    assert parse_inputs(format_inputs(spec)) == spec


@given(st.text(alphabet="x=12:float32[],()@Truein ", max_size=30))
def test_any_text_parses_or_is_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        spec = parse_inputs(text)
        assert parse_inputs(format_inputs(spec)) == spec
