"""Whole steps in this process: subjects, and the world they run in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from scanner.backends.open import open_device
from scanner.capture.frames import Frames
from scanner.capture.world import world
from scanner.locate.interface import Subject
from scanner.probe.steps import World, accumulate
from scanner.records import Accumulated, Divergence
from tests.capture.conftest import NEWEST

Build = Callable[[], Subject]


class Net(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)
        self.norm, self.drop = nn.BatchNorm1d(16), nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(self.norm(self.first(x)).tanh()).softmax(-1))


def trained(drop: float = 0.0, *, adam: bool = False) -> Subject:
    model, target = Net(drop), torch.randint(0, 3, (8,))
    parameters = model.parameters()
    return Subject(
        model=model,
        args=(torch.randn(8, 6),),
        loss=lambda out: nn.functional.cross_entropy(out, target),
        optimizer=torch.optim.AdamW(parameters)
        if adam
        else torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    )


@contextmanager
def real_world(mode: str = "auto") -> Iterator[World]:
    with world("real") as placement:
        torch.manual_seed(0)
        yield World(
            placement=placement, frames=Frames(Path(__file__).parents[2]), mode=mode, holds=NEWEST
        )


def walked(
    build: Build,
    device: str = "cpu",
    steps: int = 1,
    doing: Callable[[Divergence], object] = lambda _: None,
) -> Accumulated:
    opened = open_device(device)
    with real_world() as where:
        return accumulate(build(), where, opened, device, steps, doing)
