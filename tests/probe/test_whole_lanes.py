"""A lane's tensors are related as those of the step are."""

from __future__ import annotations

import torch

from scanner.backends.open import open_device
from scanner.probe.lanes import DeviceLane, Lane, RaisedLane

LANES = (RaisedLane(lambda _: False), DeviceLane(open_device("cpu"), lambda _: False))


def test_views_share_memory_there_as_well() -> None:
    for lane in LANES:
        x = torch.arange(6.0)
        lane.take(x)[1:3].add_(10)
        assert lane.take(x[::2]).tolist() == [0.0, 12.0, 4.0]
        assert lane.take(x.view(2, 3).T).tolist() == [[0.0, 3.0], [11.0, 4.0], [12.0, 5.0]]
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_double_precision_is_kept_from_op_to_op() -> None:
    lane = RaisedLane(lambda _: False)
    x = torch.full((2,), 1 / 3)
    y = x * 3
    own = lane.run("aten::mul.Tensor", lane.arguments((x, 3)), {})
    lane.adopt(y, own)
    exact = torch.full((2,), 1 / 3).double() * 3
    assert torch.equal(lane.take(y), exact)
    assert not torch.equal(lane.take(y), y.double())


def test_a_result_laid_out_otherwise_is_laid_out_as_in_the_step() -> None:
    lane = RaisedLane(lambda _: False)
    real = torch.arange(6.0).view(2, 3)
    lane.adopt(real, torch.arange(6.0).double().view(2, 3).T.contiguous().T)
    assert lane.take(real).stride() == (3, 1)
    assert lane.take(real.flatten()).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_dtypes_and_devices_in_arguments_are_the_lanes() -> None:
    lane = RaisedLane(lambda _: False)
    args, kwargs = lane.arguments((([1, 2],), {"dtype": torch.float16, "device": "cpu"}))
    assert (args, kwargs["dtype"]) == (([1, 2],), torch.float64)


def test_what_stays_on_the_host_is_the_steps_own() -> None:
    lane = DeviceLane(open_device("cpu"), lambda _: True)
    x = torch.ones(2)
    assert lane.take(x).data_ptr() == x.data_ptr()


def test_what_is_forgotten_is_taken_anew() -> None:
    lane: Lane = RaisedLane(lambda _: False)
    x = torch.ones(2)
    lane.take(x).zero_()
    lane.forget([x])
    assert lane.take(x).tolist() == [1.0, 1.0]


def test_storages_that_are_gone_are_let_go() -> None:
    lane = RaisedLane(lambda _: False)
    for _ in range(200):
        x = torch.ones(2)
        lane.adopt(x, x.double())
    assert len(lane._held) < 130
