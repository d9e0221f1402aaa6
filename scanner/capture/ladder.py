"""Captures the models of one source, from the cheapest way of seeing them to the dearest.

    meta    no memory, no values: almost every model
    fake    no memory; constants keep their values, ops without a meta kernel are simulated
    real    small real tensors on the CPU: control flow that depends on data
    export  torch.export's graph of the forward pass alone, when no step could be run

Every rung loads the file anew in its own world, and takes only the models that still failed.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from scanner.capture.exported import export_graph
from scanner.capture.frames import Frames
from scanner.capture.graph import assemble
from scanner.capture.holds import held
from scanner.capture.lowering import FALLBACKS
from scanner.capture.placement import Placement
from scanner.capture.protocol import (
    Attempt,
    Begin,
    CandidateInfo,
    Failed,
    Graph,
    Located,
    Message,
    Profile,
)
from scanner.capture.seeds import seed_everything
from scanner.capture.step import chosen_mode, record_step
from scanner.capture.world import Rung, world
from scanner.errors import CaptureError, OpscanError, SourceError, UsageError
from scanner.locate.interface import Candidate, Found, NeedsValues, Subject
from scanner.records import Capture, OpGraph, Unseen

__all__ = ["Climb", "climb", "described", "nbytes_of"]

Method = Literal["meta", "fake", "real", "export"]
RUNGS: tuple[tuple[Method, Rung], ...] = (
    ("meta", "meta"),
    ("fake", "fake"),
    ("real", "real"),
    ("export", "meta"),
)
"""Methods from the cheapest to the dearest, each with the world it loads the file in."""
_REASON = 200
"""Characters of an exception's text that are quoted."""
_REAL_SHARE = 0.25
"""Share of this machine's memory that a model's parameters may take with real values."""


@dataclass(frozen=True, kw_only=True)
class Climb:
    """What a climb needs to know; `find` loads the source in the ambient world."""

    find: Callable[[Rung], Found]
    source: str
    mode: str
    profiles: tuple[Profile, ...]
    skip: frozenset[str]
    frames: Frames


@dataclass
class _Pending:
    """A model that no rung has captured yet."""

    entry: str
    attempts: list[Attempt] = field(default_factory=list)
    nbytes: int = 0
    """Bytes of parameters and buffers, once it has been built."""
    error: BaseException | None = None


def climb(job: Climb) -> Iterator[Message]:
    """Yields what happens, in order; models that fail on every rung end in `Failed`.

    Raises `OpscanError` when the source itself cannot be loaded in any world.
    """
    pending: dict[str, _Pending] | None = None
    for method, rung in RUNGS:
        if pending is not None and not pending:
            return
        with world(rung) as placement:
            if rung == "real":
                seed_everything()
            try:
                found = job.find(rung)
            except OpscanError:
                if pending is None and method == "real":
                    raise
                continue
            if pending is None:
                pending = _started(found, job.skip)
                yield _located(found)
            yield from _on_rung(job, method, placement, found, pending)
    for model in (pending or {}).values():
        yield _failed(model)


def _started(found: Found, skip: frozenset[str]) -> dict[str, _Pending]:
    return {c.entry: _Pending(c.entry) for c in found.candidates if c.entry not in skip}


def _located(found: Found) -> Located:
    infos = tuple(CandidateInfo(name=c.name, entry=c.entry, how=c.how) for c in found.candidates)
    return Located(candidates=infos, notes=found.notes)


def _on_rung(
    job: Climb, method: Method, placement: Placement, found: Found, pending: dict[str, _Pending]
) -> Iterator[Message]:
    for candidate in found.candidates:
        model = pending.get(candidate.entry)
        if model is None:
            continue
        yield Begin(entry=candidate.entry)
        too_large = _too_large(model) if method == "real" else ""
        if too_large:
            model.attempts.append(Attempt(method=method, reason=too_large))
            continue
        capture = _exported if method == "export" else _recorded
        try:
            graphs = [
                Graph(
                    entry=candidate.entry,
                    profile=profile.id,
                    graph=capture(job, method, placement, candidate, model, profile),
                )
                for profile in job.profiles
            ]
        except Exception as error:  # the user's code may raise anything
            model.attempts.append(Attempt(method=method, reason=_reason(error)))
            model.error = error
            if method == "real" or _is_final(error):
                yield _failed(pending.pop(candidate.entry))
        else:
            del pending[candidate.entry]
            yield from graphs


def _is_final(error: BaseException) -> bool:
    """Whether another world would not help: the model cannot be constructed, say."""
    return isinstance(error, OpscanError) and not isinstance(error, NeedsValues | CaptureError)


def _recorded(
    job: Climb,
    method: Method,
    placement: Placement,
    candidate: Candidate,
    model: _Pending,
    profile: Profile,
) -> OpGraph:
    """One step of a freshly built model, dispatched as the profile says."""
    placement.default, placement.stepping = "target", False
    real = method == "real"
    if real:
        seed_everything()
    subject = candidate.build()
    model.nbytes = nbytes_of(subject)
    mode = chosen_mode(subject, job.mode)
    fallbacks = FALLBACKS & set(profile.holds)
    with held(frozenset(profile.holds)) as missing:
        recorder, assumed = record_step(
            subject, mode, job.frames, placement, fallbacks, keeps_values=real
        )
    unseen = (*_unheld(missing), *_unentered(subject))
    capture = Capture(
        method=method,
        complete=not unseen,
        notes=(*subject.notes, *assumed, *_climbed(model)),
        unseen=unseen,
    )
    holds = frozenset(profile.holds) - set(missing)
    return assemble(recorder, holds, capture, mode=mode, **_about(job, candidate))


def _about(job: Climb, candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "source": job.source,
        "entry": candidate.entry,
        "framework": "torch",
        "framework_version": str(torch.__version__),
    }


def _exported(
    job: Climb,
    _method: Method,
    placement: Placement,
    candidate: Candidate,
    model: _Pending,
    profile: Profile,
) -> OpGraph:
    placement.default = "target"
    with held(frozenset(profile.holds)):
        return export_graph(
            candidate.build(),
            notes=_climbed(model),
            holds=profile.holds,
            **_about(job, candidate),
        )


def _unheld(missing: tuple[str, ...]) -> tuple[Unseen, ...]:
    reason = f"the installed torch {torch.__version__} does not know this op"
    return tuple(Unseen(what=name, reason=reason) for name in missing)


def _unentered(subject: Subject) -> tuple[Unseen, ...]:
    if subject.autocast is None:
        return ()
    reason = "ops are recorded in the model's own dtypes; casts that autocast adds are not seen"
    return (Unseen(what=f"autocast to {subject.autocast}", reason=reason),)


def _climbed(model: _Pending) -> tuple[str, ...]:
    return tuple(f"{attempt.method} capture failed: {attempt.reason}" for attempt in model.attempts)


def nbytes_of(subject: Subject) -> int:
    """Bytes of parameters and buffers."""
    model = subject.model
    if not isinstance(model, torch.nn.Module):
        return 0
    return sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))


def _too_large(model: _Pending) -> str:
    allowed = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _REAL_SHARE)
    if model.nbytes <= allowed:
        return ""
    return (
        f"its parameters take {model.nbytes / 2**30:.1f} GiB, more than the "
        f"{allowed / 2**30:.1f} GiB that opscan gives real values on this machine"
    )


def _reason(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, NeedsValues) and error.__cause__ else error
    if isinstance(cause, OpscanError):
        return cause.message
    text = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {_shortened(text[0])}" if text else type(cause).__name__


def _shortened(text: str) -> str:
    """torch explains itself at length; what happened stands in the first sentence."""
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", text, maxsplit=1)[0]
    return sentence if len(sentence) <= _REASON else sentence[: _REASON - 1] + "…"


def _failed(model: _Pending) -> Failed:
    error = model.error
    located = isinstance(error, OpscanError) and not isinstance(error, CaptureError | NeedsValues)
    remedy = error.remedy if isinstance(error, OpscanError) else ""
    return Failed(
        entry=model.entry,
        stage="locate" if located else "capture",
        message=described(error) if error else "it could not be captured",
        remedy=remedy
        or "Run one step of it in plain Python on the CPU; opscan needs that to work.",
        attempts=tuple(model.attempts),
        unreadable=isinstance(error, SourceError | UsageError),
    )


def described(error: BaseException) -> str:
    """The reason, and the line of the user's that raised it."""
    line = _raising_line(error)
    return f"{_reason(error)} ({line})" if line else _reason(error)


def _raising_line(error: BaseException) -> str:
    if isinstance(error, OpscanError):
        return ""
    here = Path(__file__).resolve().parent.parent
    torch_root = Path(torch.__file__).resolve().parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename).resolve()
        if not any(path.is_relative_to(root) for root in (here, torch_root)):
            return f"{path.name}:{frame.lineno}"
    return ""
