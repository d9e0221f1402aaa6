"""Steps of one model, run on a device and on the CPU from the same initial values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from scanner.backends.interface import Device
from scanner.capture.frames import Frames
from scanner.capture.holds import held
from scanner.capture.lowering import FALLBACKS
from scanner.capture.placement import Placement
from scanner.capture.recorder import Locate
from scanner.capture.step import chosen_mode, recording, run_step
from scanner.locate.interface import Subject
from scanner.probe.follower import DeviceEnded, Doing, Follower
from scanner.records import Accumulated, StepLoss

__all__ = ["World", "accumulate", "forget_gradients"]


@dataclass(frozen=True, kw_only=True)
class World:
    """What a step is run in: the ambient world of real tensors, and how it dispatches."""

    placement: Placement
    frames: Frames
    mode: str
    """As asked for; `auto` decides by the subject."""
    holds: frozenset[str]
    seed: int = 0

    @contextmanager
    def dispatching(self) -> Iterator[frozenset[str]]:
        """Dispatches as the profile says; yields the composites that run on the CPU."""
        with held(self.holds):
            yield FALLBACKS & self.holds


def accumulate(
    subject: Subject, world: World, device: Device, spec: str, steps: int, doing: Doing
) -> Accumulated:
    """Runs `steps` steps of the subject, each op on both; see `Accumulated`.

    What the user's code raises comes out unchanged. `spec` is how the user spells the device.
    """
    mode = chosen_mode(subject, world.mode)
    losses: list[StepLoss] = []
    notes: list[str] = []
    incomplete = ""
    with world.dispatching() as fallbacks:

        def make(locate: Locate) -> Follower:
            return Follower(locate, world.placement, fallbacks, device, doing)

        with recording(subject, mode, world.frames, world.placement, make) as follower:
            torch.manual_seed(world.seed)
            try:
                for follower.step in range(1, steps + 1):
                    forget_gradients(subject)
                    ran = run_step(subject, mode, follower, world.placement)
                    losses.append(_loss(ran.loss, follower))
                    notes = ran.notes
            except DeviceEnded as ended:
                incomplete = str(ended)
    return msgspec.structs.replace(
        follower.result(spec, steps),
        steps=len(losses),
        losses=tuple(losses) if mode == "train" else (),
        incomplete=incomplete,
        notes=(*subject.notes, *notes),
    )


def forget_gradients(subject: Subject) -> None:
    """Before each step, as every training loop does."""
    if isinstance(subject.model, nn.Module):
        subject.model.zero_grad(set_to_none=True)
    if subject.optimizer is not None:
        subject.optimizer.zero_grad(set_to_none=True)


def _loss(loss: Any, follower: Follower) -> StepLoss:
    if not isinstance(loss, Tensor):
        return StepLoss(cpu=None, raised=None, device=None)
    with torch._C.DisableTorchFunction(), torch.no_grad():
        values = [loss, follower.raised.take(loss), follower.ours.take(loss)]
        cpu, raised, ours = (float(value.detach().to("cpu").double()) for value in values)
    return StepLoss(cpu=_finite(cpu), raised=_finite(raised), device=_finite(ours))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
