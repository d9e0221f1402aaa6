"""Gradients that are not unique: among equal values, and at the borders of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from scanner.backends.cpu import CpuDevice
from scanner.probe.execute import Options, run_case
from scanner.probe.inputs import drawn
from scanner.probe.schema import schema_of
from scanner.probe.standards import gradient_standard, standard_of
from scanner.probe.ties import evened
from scanner.records import OpCall
from tests.probe.num_support import call, spec

SORT = call("aten::sort", spec(shape=(2, 3)), dim=1, descending=False)
TIED = torch.tensor([[2.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
POOL = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1]}


class LastFirst(CpuDevice):
    """Takes the last of equal values where the CPU takes the first."""

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        source, dim, *rest = args
        values, index = super().call(op, (source.flip(dim), dim, *rest), kwargs)
        return values, source.shape[dim] - 1 - index


def sorted_with(device: CpuDevice, values: Tensor = TIED) -> str:
    return run_case(SORT, device, Options(repeats=0), [values]).status


def test_any_of_equal_keys_may_receive_the_gradient() -> None:
    # Positions in row 0 are (1, 0, 2) on the CPU and (1, 2, 0) on the device.
    assert sorted_with(LastFirst()) == "native"


class Halving(CpuDevice):
    """Half of the gradient is lost."""

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values, index = super().call(op, args, kwargs)
        if values.requires_grad:
            values.register_hook(lambda gradient: gradient / 2)
        return values, index


@pytest.mark.parametrize("values", [TIED, torch.arange(6.0).reshape(2, 3)])
def test_what_equal_keys_receive_together_is_compared(values: Tensor) -> None:
    assert sorted_with(Halving(), values) == "wrong"


def test_among_distinct_keys_one_is_right() -> None:
    class Swapping(CpuDevice):
        def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            values, index = super().call(op, args, kwargs)
            if values.requires_grad:
                values.register_hook(lambda gradient: gradient.flip(1))
            return values, index

    assert sorted_with(Swapping(), torch.arange(6.0).reshape(2, 3)) == "wrong"


def test_a_gradient_is_spread_over_equal_values_of_a_line() -> None:
    spread = evened("sort", SORT, "self", TIED)
    assert spread is not None
    given = torch.tensor([[1.0, 5.0, 3.0], [0.0, 3.0, 6.0]])
    assert spread(given).tolist() == [[2.0, 5.0, 2.0], [3.0, 3.0, 3.0]]


def test_a_gradient_is_spread_over_equal_values_of_a_plane() -> None:
    pool = call("aten::max_pool2d_with_indices", spec(shape=(2, 2, 2)), **POOL)
    source = torch.tensor([[[7.0, 1.0], [7.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]])
    spread = evened("max_pool2d_with_indices", pool, "self", source)
    assert spread is not None
    given = torch.tensor([[[4.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 4.0]]])
    assert spread(given).tolist() == [[[2.0, 0.0], [2.0, 0.0]], [[0.0, 0.0], [0.0, 4.0]]]


@pytest.mark.parametrize(
    ("family", "configuration", "name", "source"),
    [
        ("sort", SORT, "self", torch.arange(6.0).reshape(2, 3)),
        ("gather", call("aten::gather", spec(), spec("index"), dim=1), "self", TIED),
        ("max", call("aten::max.other", spec(), spec("other")), "self", TIED),
        ("sort", call("aten::sort.stable", spec(), stable=True, dim=1), "self", TIED),
    ],
)
def test_where_nothing_is_open_gradients_stay_as_they_are(
    family: str, configuration: OpCall, name: str, source: Tensor
) -> None:
    assert evened(family, configuration, name, source) is None


def values_of(configuration: OpCall, place: int = 0) -> Tensor:
    return drawn(schema_of(configuration.op), configuration, 0).tensors[place]


def most_equal(lines: Tensor) -> int:
    """The most often that one number stands in a line."""
    return max(int(line.unique(return_counts=True)[1].max()) for line in lines.float())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_keys_that_compete_differ_even_where_the_dtype_has_few_numbers(dtype: str) -> None:
    # 60,000 elements; bfloat16 has 3,072 numbers in twelve octaves of either sign.
    across = call("aten::sort", spec(shape=(300, 200), dtype=dtype), dim=0, descending=False)
    assert most_equal(values_of(across).T) == 1
    plane = call("aten::max_pool2d_with_indices", spec(shape=(1, 150, 400), dtype=dtype), **POOL)
    windows = values_of(plane).unfold(1, 3, 3).unfold(2, 3, 3)
    assert most_equal(windows.reshape(-1, 9)[::7]) == 1


def test_small_and_whole_operands_hold_every_rank_once() -> None:
    for dtype in ("float32", "bfloat16", "int64"):
        drawn_values = values_of(call("aten::sort", spec(shape=(8, 9), dtype=dtype), dim=0))
        assert int(drawn_values.unique().numel()) == 72


def sampler(
    dtype: str, sizes: Sequence[int], *, corners: bool, mode: int = 0, padding: int = 0
) -> OpCall:
    points = (1, *(5 for _ in sizes), len(sizes))
    return call(
        f"aten::grid_sampler_{len(sizes)}d",
        spec("input", (1, 2, *sizes), dtype),
        spec("grid", points, dtype),
        interpolation_mode=mode,
        padding_mode=padding,
        align_corners=corners,
    )


def pixels(coordinates: Tensor, size: int, corners: bool) -> Tensor:
    """PyTorch's definition: −1 and 1 are the centres of the corner pixels, or their outer edges."""
    if corners:
        return (coordinates + 1) * (size - 1) / 2
    return ((coordinates + 1) * size - 1) / 2


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize(
    ("dtype", "sizes"), [("bfloat16", (6, 9)), ("float16", (40, 7)), ("float32", (5, 6, 200))]
)
def test_sampled_positions_keep_away_from_borders_of_cells(
    dtype: str, sizes: tuple[int, ...], corners: bool
) -> None:
    grid = values_of(sampler(dtype, sizes, corners=corners), 1)
    for place, size in enumerate(reversed(sizes)):
        for coordinates in (grid[..., place].double(), grid[..., place]):
            halves = pixels(coordinates, size, corners).double() * 2
            assert float((halves - halves.round()).abs().min()) > 0.2
            # Some lie outside of the image, where the padding decides.
            assert -3 < float(halves.min()) < float(halves.max()) < 2 * size + 1


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_a_device_that_computes_positions_more_exactly_has_the_same_gradient(
    mode: int, padding: int
) -> None:
    class Wide(CpuDevice):
        def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            image, grid, *rest = args
            result = super().call(op, (image.double(), grid.double(), *rest), kwargs)
            return result.to(image.dtype)

    for corners in (True, False):
        configuration = sampler("bfloat16", (6, 9), corners=corners, mode=mode, padding=padding)
        result = run_case(configuration, Wide(), Options(repeats=0))
        assert result.status == "native", result.reason
        assert result.gradient is not None


def test_a_gradient_with_jumps_may_be_of_either_side() -> None:
    configuration = sampler("float32", (4, 4), corners=True)
    standard = standard_of(schema_of(configuration.op), configuration)
    assert gradient_standard(standard).kind == "stepped"
