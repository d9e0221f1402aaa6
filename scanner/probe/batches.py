"""Times whole steps of one model at a batch size, and how much memory they take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from scanner.backends.interface import Device
from scanner.capture.recorder import Locate
from scanner.capture.step import Mode, chosen_mode, recording, run_step
from scanner.errors import CaptureError
from scanner.locate.interface import Subject
from scanner.locate.trial import attempt
from scanner.probe.batch_dim import BatchDim, resized
from scanner.probe.follower import Doing
from scanner.probe.steps import World, forget_gradients
from scanner.probe.tape import Player, Tape
from scanner.probe.timing import summarize
from scanner.records import BatchPoint, Divergence

__all__ = ["UnfitError", "record_tape", "time_tape"]

_LEAST, _MOST = 7, 50
"""Steps that are timed."""
_SECONDS = 2.0


class UnfitError(CaptureError):
    """The step cannot be taken at this batch size; the text says why."""


def record_tape(subject: Subject, world: World, dim: BatchDim, batch: int) -> Tape:
    """The ops of the subject's second step at a batch size, run on the CPU.

    The second, since an optimizer makes its state in the first. Raises `UnfitError`, and what the
    user's code raises.
    """
    mode = chosen_mode(subject, world.mode)
    grown = resized(subject, dim.inputs, batch)
    if mode == "train" and subject.loss is not None:
        grown = replace(grown, loss=_fitting_loss(grown, dim, batch))
    with world.dispatching() as fallbacks:

        def make(locate: Locate) -> Tape:
            return Tape(locate, world.placement, fallbacks)

        with recording(grown, mode, world.frames, world.placement, make) as tape:
            torch.manual_seed(world.seed)
            _step(grown, mode, tape, world)
            tape.recording = True
            _step(grown, mode, tape, world)
            tape.recording = False
    return tape


def _step(subject: Subject, mode: Mode, tape: Tape, world: World) -> None:
    forget_gradients(subject)
    run_step(subject, mode, tape, world.placement)


def _fitting_loss(subject: Subject, dim: BatchDim, batch: int) -> Callable[[Any], Any]:
    """The file's loss, or where its targets are for as many samples as the file has, its mean over
    so many samples at a time."""
    loss = subject.loss
    assert loss is not None
    model = subject.forward or subject.model
    tried = attempt(lambda: loss(model(*subject.args, **subject.kwargs)))
    if tried.status == "ok":
        return loss
    if dim.output is None or batch % dim.size:
        raise UnfitError(f"its loss is for {dim.size} samples, of which {batch} is no multiple")
    parts = batch // dim.size

    def mean(output: Any) -> Any:
        return sum(loss(_part(output, dim, batch, number)) for number in range(parts)) / parts

    return mean


def _part(output: Any, dim: BatchDim, batch: int, number: int) -> Any:
    where = dim.output
    assert where is not None

    def cut(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() <= where or value.shape[where] != batch:
            return value
        return value.narrow(where, number * dim.size, dim.size)

    return tree_map(cut, output)


def time_tape(tape: Tape, device: Device, batch: int, doing: Doing) -> BatchPoint:
    """One batch size on the device; raises what the device raises.

    The first step is played op by op, so that an op that ends the process is known; peak memory is
    read after each op of another, and neither is timed.
    """
    device.release()
    before = _held(device)
    player = Player(tape, device)

    def tell(note: Divergence | None) -> None:
        if note is not None:
            doing(note)

    player.play(tell)
    device.synchronize()
    peak = _peak(player, device, before)
    timer = device.timer()
    first = timer(player.play)
    series = summarize(first, _samples(player, timer), 1)
    return BatchPoint(
        batch=batch,
        step_s=series.median_s,
        p10_s=series.p10_s,
        p90_s=series.p90_s,
        spread=series.spread,
        samples=series.samples,
        peak_bytes=peak,
    )


def _samples(player: Player, timer: Callable[[Callable[[], Any]], float]) -> list[float]:
    samples: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(samples) < _LEAST or (len(samples) < _MOST and time.perf_counter() < end):
        samples.append(timer(player.play))
    return samples


def _peak(player: Player, device: Device, before: int | None) -> int | None:
    if before is None:
        return None
    readings: list[int] = []
    player.play(lambda _: readings.append(_held(device) or 0))
    device.synchronize()
    return max([*readings, _held(device) or 0]) - before


def _held(device: Device) -> int | None:
    """Bytes of tensors, the first figure of every allocator."""
    return next(iter(device.memory().values()), None)
