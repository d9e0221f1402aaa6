from __future__ import annotations

import pytest
import torch

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import assert_equal, compute

ONE_HOT = "oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue:name:"


def test_sorting_along_an_axis() -> None:
    source = torch.tensor([[3.0, 1], [2, 5]])
    assert_equal(compute("sortWithTensor:axis:name:", source, 0), torch.tensor([[2.0, 1], [3, 5]]))
    found = compute("sortWithTensor:axis:descending:name:", source, -1, True)
    assert_equal(found, torch.tensor([[3.0, 1], [5, 2]]))
    found = compute("argSortWithTensor:axis:name:", source, 1)
    assert_equal(found, torch.tensor([[1, 0], [0, 1]], dtype=torch.int32))
    found = compute("argSortWithTensor:axis:descending:name:", source, 0, True)
    assert_equal(found, torch.tensor([[0, 1], [1, 0]], dtype=torch.int32))


def test_the_largest_come_first() -> None:
    source = torch.tensor([[3, 9, 5, 7]])
    values, at = compute("topKWithSourceTensor:k:name:", source, 2, outputs=2)
    assert_equal(values, torch.tensor([[9, 7]]))
    assert_equal(at, torch.tensor([[1, 3]], dtype=torch.int32))


def test_one_hot_vectors() -> None:
    indices = torch.tensor([2, 0, 7])
    found = compute(ONE_HOT, indices, 3, 1, "float16", -1.0, 0.5)
    expected = torch.tensor([[0.5, 0.5, -1], [-1, 0.5, 0.5], [0.5, 0.5, 0.5]], dtype=torch.half)
    assert_equal(found, expected)
    assert_equal(compute(ONE_HOT, indices, 3, 0, "float16", -1.0, 0.5), expected.T)


def test_places_that_are_not_zero() -> None:
    name = "nonZeroIndicesOfTensor:name:"
    found = compute(name, torch.tensor([[0, 2], [3, 0]]))
    assert_equal(found, torch.tensor([[0, 1], [1, 0]], dtype=torch.int32))
    with pytest.raises(Unsupported, match="depends on data"):
        compute(name, torch.empty(2, device="meta"))
