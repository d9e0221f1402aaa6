from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import assert_equal, compute

GATHER = "gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:"
GATHER_ALONG = "gatherAlongAxis:withUpdatesTensor:indicesTensor:name:"
SCATTER_ALONG = "scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode:name:"
SCATTER = "scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode:name:"
SCATTER_ZEROS = "scatterWithUpdatesTensor:indicesTensor:shape:axis:mode:name:"
SCATTER_ND = "scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode:name:"
SCATTER_ND_ZEROS = "scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode:name:"
ADD, SUB, MUL, DIV, MIN, MAX, SET = range(7)


def places(*values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_slices_are_gathered_along_an_axis() -> None:
    source = torch.arange(24.0).reshape(2, 3, 4)
    indices = places([2, 0], [1, 1])
    found = compute(GATHER, source, indices, 1, 0)
    assert_equal(found, source[:, indices.long()])
    assert found.shape == (2, 2, 2, 4)
    assert_equal(compute(GATHER, source, indices, -1, 0), source[..., indices.long()])


def test_batches_have_their_own_indices() -> None:
    source = torch.arange(24.0).reshape(2, 3, 4)
    found = compute(GATHER, source, places([2, 0], [1, 1]), 1, 1)
    assert_equal(found, torch.stack([source[0, [2, 0]], source[1, [1, 1]]]))
    found = compute(GATHER, source, places([3], [0]), 2, 1)
    assert_equal(found, torch.stack([source[0, :, [3]], source[1, :, [0]]]))


def test_elements_are_gathered_along_an_axis() -> None:
    source = torch.tensor([[1.0, 2], [3, 4]])
    indices = places([1, 0], [1, 1])
    assert_equal(compute(GATHER_ALONG, 0, source, indices), torch.tensor([[3.0, 2], [3, 4]]))
    assert_equal(compute(GATHER_ALONG, -1, source, indices), torch.tensor([[2.0, 1], [4, 4]]))
    with pytest.raises(Unsupported, match="shapes"):
        compute(GATHER_ALONG, 0, source, places([1]))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (ADD, [16.0, 20, 38]),
        (SUB, [4.0, 20, 22]),
        (MUL, [80.0, 20, 240]),
        (DIV, [1.25, 20, 3.75]),
        (MIN, [2.0, 20, 8]),
        (MAX, [10.0, 20, 30]),
        (SET, [4.0, 20, 8]),
    ],
)
def test_modes(mode: int, expected: list[float]) -> None:
    """10 and [2, 4] meet at 0, 30 and 8 at 2."""
    data, updates = torch.tensor([10.0, 20, 30]), torch.tensor([2.0, 8, 4])
    at = places(0, 2, 0)
    assert_equal(compute(SCATTER_ALONG, 0, data, updates, at, mode), torch.tensor(expected))
    assert_equal(compute(SCATTER, data, updates, at, 0, mode), torch.tensor(expected))
    vectors = at[:, None]
    assert_equal(compute(SCATTER_ND, data, updates, vectors, 0, mode), torch.tensor(expected))
    assert_equal(data, torch.tensor([10.0, 20, 30]))


def test_slices_are_scattered() -> None:
    data, updates = torch.zeros(2, 3), torch.tensor([[1.0, 2], [3, 4]])
    expected = torch.tensor([[2.0, 0, 1], [4, 0, 3]])
    assert_equal(compute(SCATTER, data, updates, places(2, 0), 1, SET), expected)
    found = compute(SCATTER_ZEROS, updates, places(2, 0), (2, 3), -1, ADD)
    assert_equal(found, expected)
    with pytest.raises(Unsupported, match="scatter mode 5 without data"):
        compute(SCATTER_ZEROS, updates, places(2, 0), (2, 3), 1, MAX)


def test_index_vectors_may_name_elements_or_slices() -> None:
    data = torch.zeros(2, 3)
    found = compute(SCATTER_ND, data, torch.tensor([5.0, 7]), places([1, 2], [0, 0]), 0, SET)
    assert_equal(found, torch.tensor([[7.0, 0, 0], [0, 0, 5]]))
    rows = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    found = compute(SCATTER_ND_ZEROS, rows, places([1], [1]), (2, 3), 0, ADD)
    assert_equal(found, torch.tensor([[0.0, 0, 0], [5, 7, 9]]))


def test_index_vectors_within_batches() -> None:
    updates = torch.tensor([[1.0, 2], [3, 4]])
    vectors = places([[2], [0]], [[1], [1]])
    found = compute(SCATTER_ND, torch.zeros(2, 3), updates, vectors, 1, ADD)
    assert_equal(found, torch.tensor([[2.0, 0, 1], [0, 7, 0]]))


@pytest.mark.parametrize("index", [-1, 3])
def test_indices_out_of_range_are_refused(index: int) -> None:
    data = torch.zeros(3)
    at, updates = places(index), torch.ones(1)
    with pytest.raises(Unsupported, match="outside of a dimension of 3"):
        compute(GATHER, data, at, 0, 0)
    with pytest.raises(Unsupported, match="outside of a dimension of 3"):
        compute(GATHER_ALONG, 0, data, at)
    if index > 0:
        with pytest.raises(Unsupported, match="outside of a dimension of 3"):
            compute(SCATTER_ALONG, 0, data, updates, at, ADD)
    with pytest.raises(Unsupported, match="outside of a dimension of 3"):
        compute(SCATTER_ND, data, updates, at[:, None], 0, ADD)


def test_a_negative_index_of_a_scatter_has_no_effect() -> None:
    """As the `nonzero` of 2.0 marks elements that are zero."""
    data, at = torch.zeros(2, dtype=torch.int64), places(-16, 1, -1, 0)
    updates = torch.tensor([5, 6, 7, 8], dtype=torch.int32)
    assert_equal(compute(SCATTER, data, updates, at, 0, SET), torch.tensor([8, 6]))
    with pytest.raises(Unsupported, match="outside of a dimension of 2"):
        compute(SCATTER, data, updates, places(-16, 2, 0, 1), 0, SET)


def test_shapes_are_known_before_the_run() -> None:
    source, at = torch.empty(4, 5, device="meta"), torch.empty(3, device="meta").int()
    assert compute(GATHER, source, at, 0, 0).shape == (3, 5)
    updates = torch.empty(3, 5, device="meta")
    assert compute(SCATTER, source, updates, at, 0, ADD).shape == (4, 5)
    assert compute(SCATTER_ND, source, updates, at[:, None], 0, SET).shape == (4, 5)
