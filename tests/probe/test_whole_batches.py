"""Which dimension is the batch, and the ops of a step played again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from scanner.backends.open import open_device
from scanner.capture.step import recording, run_step
from scanner.locate.interface import Subject
from scanner.probe.batch_dim import BatchDim, find_batch_dim, resized
from scanner.probe.batches import UnfitError, record_tape, time_tape
from scanner.probe.steps import forget_gradients
from scanner.probe.tape import Player, Tape
from scanner.records import Divergence

from .whole_support import real_world, trained


class Attending(nn.Module):
    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=batch_first)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x)[0]


class Calling(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


@pytest.mark.parametrize(
    ("model", "shapes", "expected"),
    [
        (nn.Linear(8, 3), [(4, 8)], BatchDim(0, 4, 0)),
        (nn.Linear(8, 3), [(1, 8)], BatchDim(0, 1, 0)),
        (Attending(batch_first=True), [(4, 5, 8)], BatchDim(0, 4, 0)),
        (Attending(batch_first=False), [(4, 5, 8)], BatchDim(1, 5, 1)),
        (nn.LSTM(8, 6), [(4, 5, 8)], BatchDim(1, 5, 1)),
        (nn.Sequential(nn.Linear(8, 3), nn.Dropout()), [(4, 8)], BatchDim(0, 4, 0)),
        (Calling(lambda x, y: ((x - y) ** 2).mean()), [(4, 8), (4, 8)], BatchDim(0, 4, None)),
    ],
)
def test_samples_are_what_is_computed_apart(
    model: nn.Module, shapes: list[tuple[int, ...]], expected: BatchDim
) -> None:
    torch.manual_seed(0)
    args = tuple(torch.randn(shape) for shape in shapes)
    if isinstance(model, nn.LSTM):
        model = Calling(lambda x, inner=model: inner(x)[0])
    assert find_batch_dim(Subject(model=model, args=args)) == expected


@pytest.mark.parametrize(
    ("function", "shapes", "reason"),
    [
        (lambda x: x.softmax(0).softmax(1), [(4, 8)], "not computed apart"),
        (lambda x, y: x @ y, [(4, 8), (8, 5)], "no dimension is common"),
        (lambda: torch.ones(1), [], "takes no tensors"),
        (lambda x: x.view(4, 8), [(4, 8)], "RuntimeError"),
    ],
)
def test_otherwise_it_is_unknown_and_says_why(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], reason: str
) -> None:
    args = tuple(torch.randn(shape) for shape in shapes)
    found = find_batch_dim(Subject(model=Calling(function), args=args))
    assert isinstance(found, str)
    assert reason in found


def test_samples_are_repeated_or_left_out() -> None:
    subject = Subject(model=None, args=(torch.tensor([1, 2, 3]), torch.tensor(7)))
    assert resized(subject, 0, 5).args[0].tolist() == [1, 2, 3, 1, 2]
    assert resized(subject, 0, 2).args[0].tolist() == [1, 2]
    assert resized(subject, 0, 2).args[1].item() == 7


def test_a_tape_computes_what_the_step_computes() -> None:
    """Played after two steps, it gives the parameters that a third step gives."""
    with real_world() as where, where.dispatching() as fallbacks:
        subject = trained()

        def make(locate: Any) -> Tape:
            return Tape(locate, where.placement, fallbacks)

        with recording(subject, "train", where.frames, where.placement, make) as tape:
            for tape.recording in (False, True):
                forget_gradients(subject)
                run_step(subject, "train", tape, where.placement)
            tape.recording = False
            weight = subject.model.first.weight
            player = Player(tape, open_device("cpu"))
            slot = next(s for s, t in tape.initial.items() if t.data_ptr() == weight.data_ptr())
            before = player.tensors[slot].clone()
            player.play()
            forget_gradients(subject)
            run_step(subject, "train", tape, where.placement)
    assert not torch.equal(before, weight)
    assert torch.equal(player.tensors[slot], weight)


def test_a_batch_is_timed_and_its_ops_are_told() -> None:
    told: list[Divergence] = []
    with real_world() as where:
        tape = record_tape(trained(adam=True), where, BatchDim(0, 8, 0), 16)
    point = time_tape(tape, open_device("cpu"), 16, told.append)
    assert (point.batch, point.peak_bytes) == (16, None)
    assert 0 < point.p10_s <= point.step_s <= point.p90_s
    assert point.sample_s == point.step_s / 16
    assert {note.phase for note in told} == {"forward", "loss", "backward", "optimizer"}


def test_targets_for_eight_samples_do_not_fit_nine() -> None:
    with real_world() as where, pytest.raises(UnfitError, match="for 8 samples, of which 9"):
        record_tape(trained(), where, BatchDim(0, 8, 0), 9)


class Accounting:
    """The CPU with an allocator that counts tensors by their bytes."""

    def __init__(self) -> None:
        self._inner = open_device("cpu")
        self.readings = iter(range(100, 10**6))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def memory(self) -> dict[str, int]:
        return {"allocated": next(self.readings), "reserved": 10**9}


def test_peak_memory_is_the_most_above_what_was_held_before() -> None:
    with real_world() as where:
        tape = record_tape(trained(), where, BatchDim(0, 8, 0), 8)
    point = time_tape(tape, Accounting(), 8, lambda _: None)  # type: ignore[arg-type]
    assert point.peak_bytes == len(tape.entries) + 1
