from __future__ import annotations

import math

import pytest
import torch

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import assert_equal, compute

NAN = math.nan


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reductionSumWithTensor", [[6.0], [15.0]]),
        ("reductionProductWithTensor", [[6.0], [120.0]]),
        ("reductionMaximumWithTensor", [[3.0], [6.0]]),
        ("reductionMinimumPropagateNaNWithTensor", [[1.0], [4.0]]),
        ("meanOfTensor", [[2.0], [5.0]]),
        ("varianceOfTensor", [[2 / 3], [2 / 3]]),
    ],
)
def test_axes_stay_with_size_one(name: str, expected: list[list[float]]) -> None:
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    found = compute(f"{name}:axes:name:", x, (-1,))
    torch.testing.assert_close(found, torch.tensor(expected))
    assert compute(f"{name}:axis:name:", x, 1).shape == (2, 1)


def test_no_axes_are_all_axes() -> None:
    x = torch.ones(2, 3, dtype=torch.int32)
    assert_equal(compute("reductionSumWithTensor:axes:name:", x, None), x.new_tensor([[6]]))
    assert compute("reductionSumWithTensor:axes:name:", torch.tensor(3.0), None).item() == 3


def test_integers_stay_in_their_type_and_wrap() -> None:
    x = torch.tensor([100, 100], dtype=torch.int8)
    found = compute("reductionSumWithTensor:axes:name:", x, (0,))
    assert_equal(found, torch.tensor([200 - 256], dtype=torch.int8))


def test_truth_values_are_counted() -> None:
    found = compute("reductionSumWithTensor:axis:name:", torch.tensor([True, True, False]), 0)
    assert_equal(found, torch.tensor([2], dtype=torch.int32))


def test_nan_is_skipped_or_propagated() -> None:
    x = torch.tensor([NAN, 1.0, 2.0])
    largest = "reductionMaximum{}WithTensor:axis:name:"
    assert compute(largest.format(""), x, 0).item() == 2
    assert math.isnan(compute(largest.format("PropagateNaN"), x, 0).item())
    assert compute("reductionArgMinimumWithTensor:axis:name:", x, 0).item() == 1


def test_logic_takes_numbers() -> None:
    x = torch.tensor([[1, 0], [2, 3]], dtype=torch.int32)
    assert compute("reductionAndWithTensor:axis:name:", x, 1).tolist() == [[False], [True]]
    assert compute("reductionOrWithTensor:axes:name:", x, None).tolist() == [[True]]


def test_places_are_int32() -> None:
    x = torch.tensor([[3.0, 5.0, 4.0]])
    found = compute("reductionArgMaximumWithTensor:axis:name:", x, -1)
    assert_equal(found, torch.tensor([[1]], dtype=torch.int32))


def test_running_totals() -> None:
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
    assert compute("cumulativeSumWithTensor:axis:name:", x, 0).tolist() == [[1, 2], [4, 6]]
    found = compute("cumulativeProductWithTensor:axis:name:", x, -1)
    assert_equal(found, torch.tensor([[1, 2], [3, 12]], dtype=torch.int32))


def test_axes_out_of_range() -> None:
    with pytest.raises(Unsupported, match="axis 2 of a tensor of rank 1"):
        compute("meanOfTensor:axes:name:", torch.ones(3), (2,))
