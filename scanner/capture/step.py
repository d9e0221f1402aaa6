"""Runs one step of a subject under the recorder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from scanner.capture.frames import Frames
from scanner.capture.modules import ModulePath
from scanner.capture.placement import Placement
from scanner.capture.recorder import Recorder
from scanner.errors import CaptureError
from scanner.locate.interface import Subject
from scanner.records import Location, Phase

__all__ = ["Mode", "Ran", "chosen_mode", "record_step", "recording", "run_step"]

Mode = Literal["train", "infer"]


def chosen_mode(subject: Subject, asked: str) -> Mode:
    """What `auto` means for this subject: training, unless the file built it for inference."""
    if asked in ("train", "infer"):
        return "train" if asked == "train" else "infer"
    if subject.loss or subject.optimizer or subject.forward:
        return "train"
    model = subject.model
    if not isinstance(model, nn.Module):
        return "infer"
    return (
        "train" if model.training and any(p.requires_grad for p in model.parameters()) else "infer"
    )


RecorderT = TypeVar("RecorderT", bound=Recorder)
MakeRecorder = Callable[[Callable[[Phase], "Location | None"]], RecorderT]
"""A recorder that is given who tells where an op comes from."""


def record_step(
    subject: Subject,
    mode: Mode,
    frames: Frames,
    placement: Placement,
    fallbacks: frozenset[str] = frozenset(),
    *,
    keeps_values: bool = False,
) -> tuple[Recorder, list[str]]:
    """One step, recorded; also what was assumed about it. `keeps_values`: see `Recorder`.

    Whatever the user's code raises comes out unchanged.
    """

    def make(locate: Callable[[Phase], Location | None]) -> Recorder:
        return Recorder(locate, placement, fallbacks, keeps_values=keeps_values)

    with recording(subject, mode, frames, placement, make) as recorder:
        return recorder, run_step(subject, mode, recorder, placement).notes


@contextlib.contextmanager
def recording(
    subject: Subject,
    mode: Mode,
    frames: Frames,
    placement: Placement,
    make: MakeRecorder[RecorderT],
) -> Iterator[RecorderT]:
    """A recorder for steps of the subject, which is in the mode asked for meanwhile."""
    modules = ModulePath(subject.model)
    recorder = make(_locator(subject, frames, modules))
    _name_values(recorder, subject)
    if isinstance(subject.model, nn.Module):
        placement.forget((*subject.model.parameters(), *subject.model.buffers()))
    placement.stepping = True
    with _as_mode(subject.model, mode), modules.tracked():
        yield recorder


@dataclass(frozen=True)
class Ran:
    """What came of one step."""

    notes: list[str]
    loss: Any = None
    """The tensor that was differentiated, if it was one."""


def run_step(subject: Subject, mode: Mode, recorder: Recorder, placement: Placement) -> Ran:
    """One step under the recorder."""
    recorder.phase = "forward"
    if mode == "train":
        return _train(subject, recorder, placement)
    with torch.no_grad(), recorder:
        _call(subject)
    return Ran([])


def _locator(
    subject: Subject, frames: Frames, modules: ModulePath
) -> Callable[[Phase], Location | None]:
    """The user's line on the stack, else the line the file gives for that phase."""
    origins = {phase: frames.at(*place) for phase, place in subject.origins.items()}

    def locate(phase: Phase) -> Location | None:
        found = frames.find(modules.current)
        return found if found is not None else origins.get(phase)

    return locate


def _name_values(recorder: Recorder, subject: Subject) -> None:
    model = subject.model
    if isinstance(model, nn.Module):
        recorder.name(model.named_parameters(), "parameter")
        recorder.name(model.named_buffers(), "buffer")
    inputs = _tensors((subject.args, subject.kwargs))
    recorder.name(((str(index), tensor) for index, tensor in enumerate(inputs)), "input")


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


@contextlib.contextmanager
def _as_mode(model: Any, mode: Mode) -> Iterator[None]:
    if not isinstance(model, nn.Module):
        yield
        return
    before = model.training
    model.train(mode == "train")
    try:
        yield
    finally:
        model.train(before)


def _call(subject: Subject) -> Any:
    return (subject.forward or subject.model)(*subject.args, **subject.kwargs)


def _train(subject: Subject, recorder: Recorder, placement: Placement) -> Ran:
    placement.default = "target"
    with recorder:
        output = _call(subject)
        recorder.phase = "loss"
        loss = subject.loss(output) if subject.loss else _loss_in(output)
        recorder.phase = "backward"
        notes = _backward(loss, output, recorder)
        recorder.phase = "optimizer"
        placement.default = "host"
        if subject.clip is not None:
            subject.clip()
        if subject.optimizer is not None:
            subject.optimizer.step()
    if subject.optimizer is None:
        notes.append("no optimizer was found in the file: the step ends after the backward pass")
    return Ran(notes, loss)


def _loss_in(output: Any) -> Tensor | None:
    """A loss that the model itself returns: a differentiable scalar, alone or in its output."""
    if isinstance(output, dict):
        output = output.get("loss")
    elif not isinstance(output, Tensor):
        output = getattr(output, "loss", output)
    candidates = [t for t in _tensors(output) if t.dim() == 0 and t.requires_grad]
    return candidates[0] if len(candidates) == 1 else None


def _backward(loss: Any, output: Any, recorder: Recorder) -> list[str]:
    if loss is not None:
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise CaptureError(
                f"the loss is {_described(loss)}, not a scalar tensor",
                remedy="return a loss callable that reduces to one number (mean or sum)",
            )
        loss.backward()
        return []
    outputs = [t for t in _tensors(output) if t.requires_grad]
    if not outputs:
        raise CaptureError(
            "nothing that the model returns depends on a trainable parameter",
            remedy="give a loss from an opscan_model() hook, or scan with --mode infer",
        )
    recorder.paused = True
    seeds = [torch.ones_like(t) for t in outputs]
    recorder.paused = False
    torch.autograd.backward(outputs, seeds)
    return ["no loss was found: the backward pass starts from the model's outputs themselves"]


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"of type {type(value).__name__}"
