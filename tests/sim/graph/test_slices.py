from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.sim.graph.methods import Unsupported
from tests.sim.graph.calls import compute

STRIDED = "sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:"
GRADIENT = (
    "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:startMask:endMask:squeezeMask:name:"
)
PAD = "padTensor:withPaddingMode:leftPadding:rightPadding:constantValue:name:"
PAD_GRADIENT = (
    "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding:name:"
)
BAND = "bandPartWithTensor:numLower:numUpper:name:"
MODES = {1: "reflect", 2: "symmetric", 3: "edge", 5: "wrap"}

bounds = st.integers(-9, 9)
steps = st.sampled_from([-3, -2, -1, 1, 2, 3])


@settings(deadline=None)
@given(bounds, bounds, steps, st.integers(0, 3), st.integers(0, 3))
def test_slices_count_as_python_does(
    start: int, end: int, step: int, first: int, last: int
) -> None:
    x = np.arange(14.0).reshape(2, 7)
    rows = slice(None if first & 1 else 0, None if last & 1 else 2, 1)
    columns = slice(None if first & 2 else start, None if last & 2 else end, step)
    found = compute(STRIDED, torch.from_numpy(x), (0, start), (2, end), (1, step), first, last, 0)
    assert np.array_equal(found.numpy(), x[rows, columns])


@settings(deadline=None)
@given(bounds, bounds, steps)
def test_a_slices_gradient_is_its_adjoint(start: int, end: int, step: int) -> None:
    x = torch.arange(7.0, dtype=torch.float64)
    taken = compute(STRIDED, x, (start,), (end,), (step,), 0, 0, 0)
    other = torch.arange(1.0, taken.numel() + 1, dtype=torch.float64)
    shape = torch.tensor([7])
    back = compute(GRADIENT, other, shape, (start,), (end,), (step,), 0, 0, 0)
    assert torch.dot(taken, other) == torch.dot(x, back)


def test_squeezed_axes() -> None:
    x = torch.arange(6).reshape(2, 3)
    assert compute(STRIDED, x, (1, 0), (2, 3), (1, 1), 0, 0, 1).tolist() == [3, 4, 5]
    shape = torch.tensor([2, 3])
    found = compute(GRADIENT, torch.tensor([7, 8, 9]), shape, (1, 0), (2, 3), (1, 1), 0, 0, 1)
    assert found.tolist() == [[0, 0, 0], [7, 8, 9]]


def test_one_axis() -> None:
    x = torch.arange(5)
    select = "sliceTensor:dimension:start:length:name:"
    assert compute(select, x, 0, 1, 2).tolist() == [1, 2]
    assert compute(select, x, -1, -2, 2).tolist() == [3, 4]


@settings(deadline=None)
@given(st.sampled_from(sorted(MODES)), st.integers(0, 3), st.integers(0, 3))
def test_padding_by_the_content(mode: int, left: int, right: int) -> None:
    x = np.arange(8.0).reshape(2, 4)
    found = compute(PAD, torch.from_numpy(x), mode, (0, left), (0, right), 0.0)
    expected = np.pad(x, ((0, 0), (left, right)), MODES[mode])  # type: ignore[call-overload]
    assert np.array_equal(found.numpy(), expected)


def test_padding_by_a_value_and_cropping() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]])
    assert compute(PAD, x, 0, (1, -1), (0, 2), 9.0).tolist() == [[9] * 4, [2, 3, 9, 9]]
    assert compute(PAD, x, 4, (0, 1), (0, 0), 9.0).tolist() == [[0, 1, 2, 3]]
    assert compute(PAD, torch.zeros(0), 0, (2,), (0,), 5.0).tolist() == [5, 5]
    with pytest.raises(Unsupported, match="padding mode 6"):
        compute(PAD, x, 6, (0, 0), (0, 0), 0.0)


@settings(deadline=None)
@given(st.sampled_from([0, 1, 3]), st.integers(-2, 3), st.integers(0, 3))
def test_a_paddings_gradient_is_its_adjoint(mode: int, left: int, right: int) -> None:
    x = torch.arange(1.0, 5.0, dtype=torch.float64)
    padded = compute(PAD, x, mode, (left,), (right,), 0.0)
    other = torch.arange(2.0, padded.numel() + 2, dtype=torch.float64)
    back = compute(PAD_GRADIENT, other, x, mode, (left,), (right,))
    assert torch.dot(padded, other) == torch.dot(x, back)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 0, [[1, 0, 0], [0, 1, 0]]),
        (-1, 0, [[1, 0, 0], [1, 1, 0]]),
        (0, -1, [[1, 1, 1], [0, 1, 1]]),
        (1, 1, [[1, 1, 0], [1, 1, 1]]),
    ],
)
def test_bands(lower: int, upper: int, expected: list[list[int]]) -> None:
    x = torch.ones(2, 3, dtype=torch.int32)
    assert compute(BAND, x, lower, upper).tolist() == expected
    tensors = [torch.tensor([number], dtype=torch.int32) for number in (lower, upper)]
    by_tensor = compute("bandPartWithTensor:numLowerTensor:numUpperTensor:name:", x, *tensors)
    assert by_tensor.tolist() == expected


def test_an_update_of_a_slice() -> None:
    selector = "sliceUpdateDataTensor:updateTensor:starts:ends:strides:name:"
    found = compute(selector, torch.zeros(4), torch.tensor([7.0, 8.0]), (0,), (4,), (2,))
    assert found.tolist() == [7, 0, 8, 0]
