from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from scanner.sim.graph.methods import Unsupported
from scanner.sim.graph.recording import Descriptor
from tests.sim.graph.calls import assert_equal, compute

NAME = "randomTensorWithShape:descriptor:stateTensor:name:"
DROPOUT = "dropoutTensor:rate:name:"
UNIFORM, NORMAL, TRUNCATED = range(3)
COUNT = 20_000


def state(seed: int = 1) -> Tensor:
    return torch.tensor([seed, 0, 0, 0, 0, 0, 0], dtype=torch.int32)


def draw(distribution: int, dtype: str = "float32", seed: int = 1, **more: Any) -> Tensor:
    kind = {"distribution": distribution, "dataType": dtype, **more}
    described = Descriptor("MPSGraphRandomOpDescriptor", kind)
    values, after = compute(NAME, (COUNT,), described, state(seed), outputs=2)
    assert after.dtype == torch.int32
    assert not torch.equal(after, state(seed))
    assert values.shape == (COUNT,)
    return values


def test_draws_depend_on_the_state_alone() -> None:
    assert_equal(draw(NORMAL), draw(NORMAL))
    assert not torch.equal(draw(NORMAL), draw(NORMAL, seed=2))


def test_uniform_numbers() -> None:
    values = draw(UNIFORM, min=-2.0, max=6.0)
    assert -2 <= values.min() < -1.9
    assert 5.9 < values.max() < 6
    assert abs(values.mean() - 2) < 0.1
    whole = draw(UNIFORM, "int32", minInteger=-1, maxInteger=3)
    assert whole.unique().tolist() == [-1, 0, 1, 2, 3]
    assert draw(UNIFORM, "float16").max() <= 1


def test_normal_numbers() -> None:
    values = draw(NORMAL, mean=3.0, standardDeviation=2.0)
    assert abs(values.mean() - 3) < 0.1
    assert abs(values.std() - 2) < 0.1
    within = draw(TRUNCATED, mean=0.0, standardDeviation=1.0, min=-1.0, max=2.0)
    assert within.min() >= -1
    assert within.max() <= 2
    # E = (φ(−1) − φ(2)) / (Φ(2) − Φ(−1)) = (0.24197 − 0.05399) / 0.81859
    assert abs(within.mean() - 0.2296) < 0.03


def test_dropout_keeps_the_mean() -> None:
    found = compute(DROPOUT, torch.ones(COUNT), 0.75)
    assert found.unique().tolist() == [0, 4]
    assert abs(found.mean() - 1) < 0.1
    assert_equal(compute(DROPOUT, torch.ones(3), 0.0), torch.ones(3))


def test_shapes_are_known_before_the_run_and_others_are_refused() -> None:
    kind = {"distribution": NORMAL, "dataType": "float16"}
    described = Descriptor("MPSGraphRandomOpDescriptor", kind)
    values, _ = compute(NAME, (2, 3), described, state().to("meta"), outputs=2)
    assert values.is_meta
    assert (values.shape, values.dtype) == ((2, 3), torch.float16)
    with pytest.raises(Unsupported, match="distribution 3"):
        draw(3)
