from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tests.sim.graph.calls import assert_equal, compute

DEPTH = "depthToSpace2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"
SPACE = "spaceToDepth2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder:name:"


def test_inverses_of_batches() -> None:
    source = torch.tensor([[[2.0, 0], [0, 4]], [[0, 1], [1, 0]]])
    found = compute("inverseOfTensor:name:", source)
    assert_equal(found, torch.tensor([[[0.5, 0], [0, 0.25]], [[0, 1], [1, 0]]]))


def test_bands() -> None:
    """Negative numbers keep a whole triangle."""
    source = torch.ones(3, 3)
    by_numbers = "bandPartWithTensor:numLower:numUpper:name:"
    expected = torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 1, 1]])
    assert_equal(compute(by_numbers, source, 1, 0), expected)
    assert_equal(compute(by_numbers, source, -1, 0), source.tril())
    assert_equal(compute(by_numbers, source, 0, -1), source.triu())
    assert_equal(compute(by_numbers, source, -1, -1), source)
    by_tensors = "bandPartWithTensor:numLowerTensor:numUpperTensor:name:"
    one, none = torch.tensor([1], dtype=torch.int32), torch.tensor([0], dtype=torch.int32)
    assert_equal(compute(by_tensors, source, one, none), expected)


def pixels(*shape: int) -> Tensor:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def test_pixel_shuffles_are_torchs() -> None:
    source = pixels(2, 8, 3, 2)
    found = compute(DEPTH, source, 3, 2, 1, 2, True)
    assert_equal(found, functional.pixel_shuffle(source, 2))
    assert_equal(compute(SPACE, found, 3, 2, 1, 2, True), source)


def test_blocks_outside_of_channels() -> None:
    """Channel 2 · block + channel: pixel (0, 1) of channel 0 comes from depth 2."""
    source = pixels(8, 1, 1)
    found = compute(DEPTH, source, 2, 1, 0, 2, False)
    assert_equal(found, torch.tensor([[[0.0, 2], [4, 6]], [[1, 3], [5, 7]]]))
    assert_equal(compute(SPACE, found, 2, 1, 0, 2, False), source)
