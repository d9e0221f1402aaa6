"""What the parent and the child that runs whole steps on a device say to each other.

As in `scanner.capture.protocol`: the parent writes a `WholeJob`, the child appends messages to a
file. A `Doing` comes before each op that the device is given, so that the op in flight is known
whatever becomes of the child, and silence means that it hangs.
"""

from __future__ import annotations

import msgspec

from scanner.capture.protocol import Begin, Crash, Done, Job
from scanner.records import Accumulated, BatchPoint, BatchSweep, Divergence

__all__ = [
    "Doing",
    "Point",
    "Refused",
    "Swept",
    "Timing",
    "Walked",
    "WholeJob",
    "WholeMessage",
    "decode_whole",
    "encode_whole",
]


class WholeJob(msgspec.Struct, frozen=True, kw_only=True):
    """Models of one source to run."""

    job: Job
    """As for capturing; `profiles` holds the one that the device dispatches by, `skip` is empty."""
    entries: tuple[str, ...]
    device: str
    steps: int = 0
    """Steps to run beside the CPU; 0 for none."""
    batches: tuple[int, ...] = ()
    """Batch sizes to time, in rising order."""
    seed: int = 0


class Doing(msgspec.Struct, frozen=True, kw_only=True, tag="doing"):
    """The device is given this op now; `note` is what to say if it does not come back."""

    note: Divergence


class Walked(msgspec.Struct, frozen=True, kw_only=True, tag="walked"):
    """Steps were run beside the CPU."""

    entry: str
    result: Accumulated


class Timing(msgspec.Struct, frozen=True, kw_only=True, tag="timing"):
    """A batch size is begun."""

    entry: str
    batch: int


class Point(msgspec.Struct, frozen=True, kw_only=True, tag="point"):
    """A batch size was timed."""

    entry: str
    point: BatchPoint


class Swept(msgspec.Struct, frozen=True, kw_only=True, tag="swept"):
    """All batch sizes of an entry have been dealt with; `result` has no points, see `Point`."""

    entry: str
    result: BatchSweep


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """An entry (empty: the whole source) was not run."""

    entry: str
    reason: str


WholeMessage = Begin | Doing | Walked | Timing | Point | Swept | Refused | Crash | Done

_DECODER = msgspec.json.Decoder(WholeMessage)
_ENCODER = msgspec.json.Encoder()


def encode_whole(message: WholeMessage) -> bytes:
    """One line, newline included."""
    return _ENCODER.encode(message) + b"\n"


def decode_whole(line: bytes) -> WholeMessage:
    """The message in one line; raises `msgspec.MsgspecError` when it holds none."""
    return _DECODER.decode(line)
