"""Tensors made from specs."""

from __future__ import annotations

import torch

from scanner.locate.spec import DTYPES, TensorInput, format_inputs, parse_inputs
from scanner.locate.tensors import make_inputs, make_value, spec_of


def test_positional_and_named() -> None:
    args, kwargs = make_inputs(parse_inputs("2x3,mask=2:bool,k=int(4)"))
    assert [tuple(arg.shape) for arg in args] == [(2, 3)]
    assert kwargs["mask"].dtype == torch.bool
    assert kwargs["k"] == 4


def test_tensors_belong_to_the_surrounding_world() -> None:
    with torch.device("meta"):
        (tensor,), _ = make_inputs(parse_inputs("2x3:float16"))
    assert tensor.is_meta
    assert tensor.dtype == torch.float16


def test_host_tensors_stay_there_and_hold_values() -> None:
    with torch.device("meta"):
        (tensor,), _ = make_inputs(parse_inputs("2:int64[5,6]@cpu"))
    assert tensor.device.type == "cpu"
    assert tensor.tolist() == [5, 5]


def test_every_dtype_is_one_of_torch() -> None:
    for name in DTYPES:
        assert make_value(TensorInput(shape=(2,), dtype=name)).dtype == getattr(torch, name)


def test_drawn_values_keep_their_range() -> None:
    (ids, unit), _ = make_inputs(parse_inputs("1000:int64[3,7],1000:float32[-1,2]"), real=True)
    assert set(ids.tolist()) == {3, 4, 5, 6}
    assert -1 <= unit.min() < -0.9
    assert 1.9 < unit.max() < 2


def test_drawn_values_without_a_range() -> None:
    (bits, flags, normal), _ = make_inputs(parse_inputs("99:int64,99:bool,999"), real=True)
    assert set(bits.tolist()) == {0, 1}
    assert set(flags.tolist()) == {False, True}
    assert normal.min() < -1
    assert normal.max() > 1


def test_drawing_is_repeatable_and_leaves_the_random_state() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, second = (make_inputs(parse_inputs("5"), real=True)[0][0] for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.rand(3), expected)


def test_spec_of_arguments() -> None:
    state = (torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))
    spec = spec_of((torch.zeros(2, 3, dtype=torch.int64),), {"state": state, "flag": True})
    assert spec is not None
    assert format_inputs(spec) == ("2x3:int64,state=(1x2x3:float32,1x2x3:float32),flag=True")


def test_arguments_without_a_spec() -> None:
    assert spec_of(({"a": torch.zeros(2)},)) is None
    assert spec_of(("text",)) is None
    assert spec_of(((),)) is None
