from __future__ import annotations

import pytest
import torch

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import compute

BLOCKS = "widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"


def test_reshape_by_numbers_and_by_a_tensor() -> None:
    x = torch.arange(6.0)
    assert compute("reshapeTensor:withShape:name:", x, (2, -1)).shape == (2, 3)
    shape = torch.tensor([3, 2], dtype=torch.int32)
    assert compute("reshapeTensor:withShapeTensor:name:", x, shape).shape == (3, 2)


def test_transposes() -> None:
    x = torch.arange(6.0).reshape(1, 2, 3)
    assert compute("transposeTensor:dimension:withDimension:name:", x, -1, -2).shape == (1, 3, 2)
    assert compute("transposeTensor:permutation:name:", x, (2, 0, 1)).shape == (3, 1, 2)


def test_axes_of_size_one() -> None:
    x = torch.zeros(2, 3)
    assert compute("expandDimsOfTensor:axis:name:", x, -1).shape == (2, 3, 1)
    assert compute("expandDimsOfTensor:axes:name:", x, (0, 2)).shape == (1, 2, 1, 3)
    assert compute("squeezeTensor:axes:name:", torch.zeros(1, 2, 1), (0, -1)).shape == (2,)
    assert compute("squeezeTensor:axis:name:", torch.zeros(1, 2, 1), 0).shape == (2, 1)
    with pytest.raises(Unsupported, match=r"axes \[0\] of shape \[2, 3\]"):
        compute("squeezeTensor:axis:name:", x, 0)


def test_flatten_into_rows() -> None:
    x = torch.zeros(2, 3, 4)
    assert compute("flatten2DTensor:axis:name:", x, 1).shape == (2, 12)
    assert compute("flatten2DTensor:axis:name:", x, -1).shape == (6, 4)
    assert compute("flatten2DTensor:axis:name:", x, 3).shape == (24, 1)


def test_tiles_and_broadcasts() -> None:
    x = torch.tensor([[1.0, 2.0]])
    assert compute("tileTensor:withMultiplier:name:", x, (2, 2)).tolist() == [[1, 2, 1, 2]] * 2
    assert compute("broadcastTensor:toShape:name:", x, (2, 2)).tolist() == [[1, 2]] * 2
    with pytest.raises(Unsupported, match="3 multipliers for a tensor of rank 2"):
        compute("tileTensor:withMultiplier:name:", x, (1, 1, 1))


def test_concatenation_and_its_inverse() -> None:
    x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])
    assert compute("concatTensors:dimension:name:", [x, y], 0).tolist() == [[1], [2], [3], [4]]
    woven = compute("concatTensors:dimension:interleave:name:", [x, y], 0, True)
    assert woven.tolist() == [[1], [3], [2], [4]]
    assert compute("concatTensor:withTensor:dimension:name:", x, y, 1).tolist() == [[1, 3], [2, 4]]
    parts = compute("splitTensor:numSplits:axis:name:", woven, 2, 0)
    assert [part.tolist() for part in parts] == [[[1], [3]], [[2], [4]]]


def test_reversal() -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    assert compute("reverseTensor:axes:name:", x, (-1,)).tolist() == [[2, 1], [4, 3]]


def test_coordinates_are_int32() -> None:
    found = compute("coordinateAlongAxis:withShape:name:", -1, (2, 3))
    assert found.dtype == torch.int32
    assert found.tolist() == [[0, 1, 2]] * 2
    shape, axis = torch.tensor([2, 2]), torch.tensor([0])
    rows = compute("coordinateAlongAxisTensor:withShapeTensor:name:", axis, shape)
    assert rows.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("shuffle", [True, False])
def test_blocks_go_to_depth_and_back(shuffle: bool) -> None:
    x = torch.arange(2.0 * 8 * 3 * 5).reshape(2, 8, 3, 5)
    wide = compute(f"depthToSpace2DTensor:{BLOCKS}", x, 3, 2, 1, 2, shuffle)
    assert wide.shape == (2, 2, 6, 10)
    if shuffle:
        assert torch.equal(wide, torch.pixel_shuffle(x, 2))
    else:
        assert wide[0, :, 0, 1].tolist() == [x[0, 2, 0, 0].item(), x[0, 3, 0, 0].item()]
    back = compute(f"spaceToDepth2DTensor:{BLOCKS}", wide, 3, 2, 1, 2, shuffle)
    assert torch.equal(back, x)
