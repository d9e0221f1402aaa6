"""Where a device begins to win: the search on a clock that is told what to say, and growing."""

from __future__ import annotations

import pytest

from scanner.probe.break_even import (
    BreakEven,
    Ladder,
    Limit,
    Size,
    break_even_text,
    find_break_even,
)
from scanner.probe.grow import growth_of
from scanner.probe.measure import _told
from scanner.probe.schema import schema_of
from scanner.probe.torch_runner import TorchRunner
from scanner.records import Measurement, OpCall, TensorSpec


class Machine:
    """A device with a launch cost of 50 µs against a CPU that takes 1 µs an element."""

    def __init__(self, launch_s: float = 50e-6, refuses_from: int = 1 << 30) -> None:
        self.now = 0.0
        self.launch_s = launch_s
        self.refuses_from = refuses_from

    def time_at(self, factor: int) -> tuple[float, float]:
        if factor >= self.refuses_from:
            raise RuntimeError("too large")
        times = self.launch_s + factor * 1e-8, factor * 1e-6
        self.now += sum(times)
        return times

    def search(self, **limit: float) -> BreakEven:
        ladder = Ladder(size_of=lambda factor: (factor, 4 * factor), time_at=self.time_at)
        return find_break_even(ladder, Limit(**limit), clock=lambda: self.now)  # type: ignore[arg-type]


def test_sizes_are_doubled_until_the_device_wins() -> None:
    found = Machine().search()
    assert found.reached
    assert [size.factor for size in found.sizes] == [2, 4, 8, 16, 32, 64]
    assert found.sizes[-1].device_s < found.sizes[-1].cpu_s
    assert found.sizes[-2].device_s > found.sizes[-2].cpu_s


def test_one_lucky_look_does_not_win() -> None:
    looks = iter([(1.0, 2.0), (2.0, 1.0), (1.0, 2.0), (1.0, 2.0)])
    ladder = Ladder(size_of=lambda factor: (factor, 0), time_at=lambda _: next(looks))
    found = find_break_even(ladder, Limit())
    assert [size.factor for size in found.sizes] == [2, 4]
    assert found.reached


@pytest.mark.parametrize(
    ("machine", "limit", "stopped", "last"),
    [
        (Machine(launch_s=1.0), {"seconds": 1e9, "memory": 4 * 100}, "memory", 64),
        (Machine(launch_s=1.0), {"seconds": 5.0}, "time", 8),
        (Machine(launch_s=1.0, refuses_from=16), {"seconds": 1e9}, "refused", 8),
    ],
)
def test_bounds(machine: Machine, limit: dict[str, float], stopped: str, last: int) -> None:
    found = machine.search(**limit)
    assert (found.reached, found.stopped, found.sizes[-1].factor) == (False, stopped, last)


def test_in_words() -> None:
    size = Size(factor=64, elements=1_048_576, device_s=1.0, cpu_s=2.0)
    assert break_even_text(BreakEven(reached=True, sizes=(size,))) == (
        "the device wins from 1,048,576 elements on (64 times the batch)"
    )
    assert break_even_text(BreakEven(reached=False, sizes=(size,), stopped="memory")) == (
        "the device does not win up to 1,048,576 elements: more would take too much memory"
    )
    assert break_even_text(BreakEven(reached=False, stopped="fixed")) == (
        "how it does with more work at once is not known: "
        "no dimension of it is a batch that could be grown"
    )


def spec(
    name: str, *shape: int, stride: tuple[int, ...] = (), dtype: str = "float32"
) -> TensorSpec:
    dense = []
    step = 1
    for size in reversed(shape):
        dense.append(step)
        step *= size
    return TensorSpec(name=name, dtype=dtype, shape=shape, stride=stride or tuple(dense[::-1]))


def call(op: str, *inputs: TensorSpec, **attributes: object) -> OpCall:
    return OpCall(op=f"aten::{op}", phase="forward", inputs=inputs, attributes=attributes)


@pytest.mark.parametrize(
    ("configuration", "shapes"),
    [
        # Square, so that every tensor is as long as the batch.
        (call("mm", spec("self", 4, 4), spec("mat2", 4, 4)), [(32, 4), (4, 4)]),
        (
            call("linear", spec("input", 4, 4), spec("weight", 4, 4), spec("bias", 4)),
            [(32, 4), (4, 4), (4,)],
        ),
        (
            call("addmm", spec("self", 4), spec("mat1", 4, 6), spec("mat2", 6, 4), beta=1, alpha=1),
            [(4,), (32, 6), (6, 4)],
        ),
        (call("mul.Tensor", spec("self", 3, 5), spec("other", 3, 5)), [(24, 5), (24, 5)]),
        (call("mul.Tensor", spec("self", 3, 5), spec("other", 5)), [(24, 5), (5,)]),
        (call("view", spec("self", 3, 4), size=[3, 2, 2]), [(24, 4)]),
        (
            call("embedding", spec("weight", 7, 4), spec("indices", 3, dtype="int64"),
                padding_idx=-1, scale_grad_by_freq=False, sparse=False),
            [(7, 4), (24,)],
        ),
        (call("_foreach_neg_", spec("self[0]", 3, 2), spec("self[1]", 5)), [(24, 2), (40,)]),
        (
            call(
                "native_group_norm", spec("input", 2, 4, 3), spec("weight", 4), spec("bias", 4),
                N=2, C=4, HxW=3, group=2, eps=1e-5,
            ),
            [(16, 4, 3), (4,), (4,)],
        ),
    ],
)  # fmt: skip
def test_the_batch_is_found(configuration: OpCall, shapes: list[tuple[int, ...]]) -> None:
    growth = growth_of(schema_of(configuration.op), configuration, 0)
    assert growth is not None
    assert [spec.shape for spec in growth.at(8).inputs] == shapes


def test_what_has_no_batch_is_not_grown() -> None:
    scalar = call("exp", spec("self"))
    square_only = call("linalg_inv_ex", spec("A", 3, 3), check_errors=False)
    for configuration in (scalar, square_only):
        assert growth_of(schema_of(configuration.op), configuration, 0) is None


def test_layouts_are_kept() -> None:
    transposed = call("exp", spec("self", 3, 5, stride=(1, 3)))
    expanded = call("exp", spec("self", 3, 5, stride=(0, 1)))
    grown = [
        growth.at(4).inputs[0].stride
        for each in (transposed, expanded)
        if (growth := growth_of(schema_of(each.op), each, 0))
    ]
    assert grown == [(1, 12), (0, 1)]


def test_sizes_bound_what_is_held() -> None:
    configuration = call("mul.Tensor", spec("self", 3, 5), spec("other", 5))
    growth = growth_of(schema_of(configuration.op), configuration, 0)
    assert growth is not None
    assert growth.size(8) == (120, 4 * (120 + 5 + 120))


def test_a_search_that_could_not_end_in_time_is_not_begun() -> None:
    runner = TorchRunner("cpu", {"break_even": True, "timing_s": 0.0})
    ran = runner.run(call("mul.Tensor", spec("self", 3, 5), spec("other", 3, 5)))
    assert ran.detail["break_even"]["stopped"] == "time"
    assert not ran.detail["break_even"]["sizes"]


def test_a_worker_that_searches_judges_nothing() -> None:
    runner = TorchRunner("drill:slow=*,nan=*", {"break_even": True, "timing_s": 0.01})
    ran = runner.run(call("mul.Tensor", spec("self", 3, 5), spec("other", 3, 5)))
    assert set(ran.detail) == {"break_even"}
    assert ran.detail["break_even"]["sizes"][0]["factor"] == 2


@pytest.mark.parametrize(
    ("status", "detail", "said"),
    [
        ("crash", {}, "more ends the process"),
        ("unknown", {}, "the search was cut short"),
        ("slow", {"break_even": {"reached": False, "stopped": "fixed"}}, "no dimension"),
    ],
)
def test_what_becomes_of_a_search_does_not_change_the_verdict(
    status: str, detail: dict[str, object], said: str
) -> None:
    slow = Measurement(device="d", status="slow", detail={"reason": "slow", "timing": {"ratio": 3}})
    found = _told(slow, Measurement(device="d", status=status, detail=detail))  # type: ignore[arg-type]
    assert found.status == "slow"
    assert found.detail["reason"].startswith("slow; ")
    assert said in found.detail["reason"]
    assert found.detail["timing"]["ratio"] == 3
