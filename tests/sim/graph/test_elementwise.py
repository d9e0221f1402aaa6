from __future__ import annotations

import math

import pytest
import torch

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import assert_equal, compute

NAN = math.nan


def binary(name: str, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    found = compute(f"{name}WithPrimaryTensor:secondaryTensor:name:", first, second)
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("squareRoot", 9.0, 3.0),
        ("exponentBase2", 3.0, 8.0),
        ("logarithmBase10", 1000.0, 3.0),
        ("reverseSquareRoot", 4.0, 0.5),
        ("reciprocalSquareRoot", 4.0, 0.5),
        ("truncate", -1.5, -1.0),
        ("floor", -1.5, -2.0),
        ("ceil", -1.5, -1.0),
        ("round", 2.5, 2.0),
        ("sign", -3.0, -1.0),
        ("absolute", -3.0, 3.0),
        ("reLU", -3.0, 0.0),
    ],
)
def test_functions_of_one_number(name: str, value: float, expected: float) -> None:
    found = compute(f"{name}WithTensor:name:", torch.tensor([value]))
    assert found.tolist() == pytest.approx([expected])


def test_integers_are_not_promoted() -> None:
    five = torch.tensor([5], dtype=torch.int32)
    assert_equal(compute("floorWithTensor:name:", five), five)
    assert_equal(compute("squareWithTensor:name:", five), five * 5)
    with pytest.raises(Unsupported, match="of int32"):
        compute("sinWithTensor:name:", five)


def test_complex_magnitude_stays_complex() -> None:
    number = torch.tensor([3 + 4j])
    assert_equal(compute("absoluteWithTensor:name:", number), torch.tensor([5 + 0j]))
    assert_equal(compute("imaginaryPartOfTensor:name:", number), torch.tensor([4.0]))


def test_integer_division_truncates() -> None:
    first = torch.tensor([7, -7, 7, 5], dtype=torch.int32)
    second = torch.tensor([2, 2, -2, 0], dtype=torch.int32)
    assert binary("division", first, second).tolist() == [3, -3, -3, 0]
    assert binary("division", torch.tensor([1.0]), torch.tensor([0.0])).item() == math.inf
    assert binary("divisionNoNaN", torch.tensor([1.0]), torch.tensor([0.0])).item() == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [("maximum", 1.0), ("minimum", 1.0), ("maximumWithNaNPropagation", NAN)],
)
def test_nan_against_a_number(name: str, expected: float) -> None:
    found = binary(name, torch.tensor([NAN]), torch.tensor([1.0]))
    assert_equal(found, torch.tensor([expected]))


def test_operands_are_broadcast() -> None:
    found = binary("lessThan", torch.tensor([[1.0], [3.0]]), torch.tensor([2.0, 4.0]))
    assert_equal(found, torch.tensor([[True, True], [False, True]]))


def test_select_takes_any_predicate() -> None:
    selector = "selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:"
    predicate = torch.tensor([0, 2], dtype=torch.uint8)
    found = compute(selector, predicate, torch.tensor([1.0]), torch.tensor([5.0, 6.0]))
    assert found.tolist() == [5, 1]
    with pytest.raises(Unsupported, match="different types"):
        compute(selector, predicate, torch.tensor([1.0]), torch.tensor([1]))


def test_clamp_loses_nan() -> None:
    selector = "clampWithTensor:minValueTensor:maxValueTensor:name:"
    low, high = torch.tensor(-1.0), torch.tensor(1.0)
    assert compute(selector, torch.tensor([-3.0, 0.5, 3.0, NAN]), low, high).tolist() == [
        -1,
        0.5,
        1,
        -1,
    ]


def test_reinterpretation_keeps_bits() -> None:
    selector = "reinterpretCastTensor:toType:name:"
    assert compute(selector, torch.tensor([1.0]), "int32").tolist() == [0x3F800000]
    with pytest.raises(Unsupported, match="another size"):
        compute(selector, torch.tensor([1.0]), "int16")
