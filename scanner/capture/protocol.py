"""What the parent and its capture child say to each other.

The parent writes one `Job` as JSON and starts `python -m scanner.capture.worker JOB RESULT`. The
child appends one `Message` a line to RESULT and flushes it, so that whatever kills the child, the
parent still has all that was captured before and knows from the last `Begin` what was in flight.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from scanner.records import OpGraph

__all__ = [
    "Attempt",
    "Begin",
    "CandidateInfo",
    "Crash",
    "Done",
    "Failed",
    "Graph",
    "Job",
    "JobSource",
    "Located",
    "Message",
    "Profile",
    "decode_message",
    "encode_message",
]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A way of dispatching that one or more targets share; a model is captured once for each."""

    id: str
    holds: tuple[str, ...]
    """Ops that the targets dispatch whole, sorted; everything else decomposes as in `release`."""
    release: str
    """The newest torch release among the targets that share this profile."""


class JobSource(msgspec.Struct, frozen=True, kw_only=True):
    """A `scanner.locate` source, as plain data; see `scanner.locate.interface.Source`."""

    argument: str
    path: str | None = None
    """Absolute."""
    module: str | None = None
    name: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One source to load and capture."""

    source: JobSource
    cwd: str
    """Absolute; the child changes into it before it loads anything."""
    mode: Literal["auto", "train", "infer"] = "auto"
    inputs: str | None = None
    """An `--inputs` spec; checked by the child, which knows the forward signature."""
    entry: str | None = None
    """The `entry` setting; `source.name` wins over it."""
    profiles: tuple[Profile, ...] = ()
    skip: tuple[str, ...] = ()
    """Entries that an earlier child has finished, or died of."""
    notes: tuple[str, ...] = ()
    """What finding the source left out; repeated by the parent, not by the child."""


class CandidateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model that the source offers; see `scanner.locate.interface.Candidate`."""

    name: str
    entry: str
    how: str


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A rung of the capture ladder that failed."""

    method: str
    reason: str


class Located(msgspec.Struct, frozen=True, kw_only=True, tag="located"):
    """The source was loaded; these are its models, those in `skip` included."""

    candidates: tuple[CandidateInfo, ...]
    notes: tuple[str, ...] = ()
    """What was assumed or left out, worded for the user."""


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """Work on this entry starts; if the child dies now, this entry is to blame."""

    entry: str


class Graph(msgspec.Struct, frozen=True, kw_only=True, tag="graph"):
    """One captured step of an entry, dispatched as `profile` says."""

    entry: str
    profile: str
    graph: OpGraph


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """An entry, or the file itself, could not be captured."""

    entry: str
    """Empty for the file itself."""
    stage: Literal["locate", "capture"]
    message: str
    remedy: str = ""
    attempts: tuple[Attempt, ...] = ()
    unreadable: bool = False
    """True when the user must mend something before opscan can start: a syntax error, a package
    that is not installed, an input spec that does not parse (exit 2). False when the file was
    readable but a model in it could not be captured (exit 3)."""


class Crash(msgspec.Struct, frozen=True, kw_only=True, tag="crash"):
    """An error of opscan's own in the child."""

    traceback: str


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """Every entry has been dealt with."""


Message = Located | Begin | Graph | Failed | Crash | Done

_DECODER = msgspec.json.Decoder(Message)
_ENCODER = msgspec.json.Encoder()


def encode_message(message: Message) -> bytes:
    """One line of the result file, newline included."""
    return _ENCODER.encode(message) + b"\n"


def decode_message(line: bytes) -> Message:
    """The message in one line; raises `msgspec.MsgspecError` when the line holds none."""
    return _DECODER.decode(line)
