"""What the supervisor and its workers say to each other, over two pipes of their own.

The supervisor writes a `Setup`, then `Run`s, then `Close`. The worker answers `Ready` or
`Refused`, then a `Begin` before each configuration and a `Result` after it. Whatever kills the
worker, the last `Begin` names what was in flight.

Framing is that of JSON text sequences (RFC 7464): a record separator, JSON, a line feed. JSON
text cannot hold a bare record separator, so a reader finds its feet again after anything that a
stray `write` may have put on the pipe.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from scanner.backends.interface import DeviceFacts, Unusable
from scanner.records import Status

__all__ = [
    "OWN_FAULT",
    "Begin",
    "Broken",
    "Bye",
    "Close",
    "Command",
    "Death",
    "DeathKind",
    "Frames",
    "Idle",
    "Message",
    "Outcome",
    "Ready",
    "Refused",
    "Result",
    "Run",
    "Setup",
    "Sick",
    "encode",
]

OWN_FAULT = 86
"""Exit code of a worker that fails by itself, which says nothing about any op."""

_START = b"\x1e"
_END = b"\n"
_ENCODER = msgspec.json.Encoder()

DeathKind = Literal["signal", "exit", "hang", "device", "memory", "outside"]
"""How a worker was lost. `device`: the process lives but its device does not; `memory`: it said so
before it died; `outside`: a signal that other programs send, or a fault of the worker's own."""


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Setup(_Message, frozen=True, kw_only=True, tag="setup"):
    """Everything a worker is told once."""

    runner: str
    """`module:factory`, see `scanner.probe.runner`."""
    device: str
    """As on the command line; see `scanner.backends.open`."""
    cases: str
    """Path of a file that holds every configuration as JSON, addressed by `Run`."""
    options: dict[str, Any] = {}
    """Passed to the factory."""
    memory: int | None = None
    """Most bytes of address space; None for no limit."""
    growth: int = 2 << 30
    """A worker that has grown by so many bytes ends, and is replaced."""
    linger_s: float = 0.1
    """How long to wait for a late death, where that matters."""
    orphan_s: float = 3600.0
    """A configuration that takes so long ends the worker, should the supervisor not have."""


class Run(_Message, frozen=True, kw_only=True, tag="run"):
    """Run the configuration at `start`, `size` bytes long, in the file of cases."""

    index: int
    start: int
    size: int
    careful: bool = False
    """Wait for late deaths before the result is given."""


class Close(_Message, frozen=True, kw_only=True, tag="close"):
    """Wait for late deaths, say `Bye` and end."""


class Ready(_Message, frozen=True, kw_only=True, tag="ready"):
    """The device has been proven to work."""

    facts: DeviceFacts


class Refused(_Message, frozen=True, kw_only=True, tag="refused"):
    """The device cannot be used."""

    unusable: Unusable


class Begin(_Message, frozen=True, kw_only=True, tag="begin"):
    """From here on a death is this configuration's."""

    index: int
    said: int
    """Bytes that had been printed to stderr before."""


class Result(_Message, frozen=True, kw_only=True, tag="result"):
    """A configuration was run to its end."""

    index: int
    status: Status
    reason: str
    detail: dict[str, Any]
    """What the runner found, encodable as JSON."""
    fallbacks: tuple[str, ...] = ()
    """Ops that said they ran on the CPU."""
    warnings: tuple[str, ...] = ()
    """Every other warning, once each."""
    seconds: float = 0.0


class Broken(_Message, frozen=True, kw_only=True, tag="broken"):
    """The runner itself raised: no verdict on the op."""

    index: int
    error: str
    """Last line of the traceback."""
    traceback: str
    memory: bool = False
    """Whether it was for lack of memory."""


class Sick(_Message, frozen=True, kw_only=True, tag="sick"):
    """After this configuration the device no longer works in this process, which ends now."""

    index: int
    reason: str


class Idle(_Message, frozen=True, kw_only=True, tag="idle"):
    """Everything given has been done: a result that has not arrived by now is lost."""


class Bye(_Message, frozen=True, kw_only=True, tag="bye"):
    """The worker ends, having waited for late deaths."""

    grown: bool = False
    """Whether it ends because it has grown too large."""


Command = Setup | Run | Close
Message = Ready | Refused | Begin | Result | Broken | Sick | Idle | Bye


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence of a configuration that ends its process or never returns."""

    kind: DeathKind
    what: str
    """`SIGABRT`, `exit code 7`, `no result within 60 s`, the device's message."""
    stderr: str = ""
    """The last of what was printed while the configuration ran."""
    times: int = 1
    """How many runs ended like this."""
    runs: int = 1
    """Out of how many."""
    alone: bool = False
    """Whether it was also seen in a process that had run nothing else before."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one configuration; the last outcome for a key is the one that holds."""

    key: str
    """`scanner.probe.plan.config_key`."""
    status: Status
    reason: str
    detail: dict[str, Any] = {}
    """A `scanner.probe.outcome.CaseResult` as JSON, when the configuration ran to its end."""
    fallbacks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    death: Death | None = None
    seconds: float = 0.0
    """How long the configuration took, everything included; 0 when it was not run."""
    final: bool = True
    """False when it should be run again by the next scan: nothing was learnt about the op."""


def encode(message: Command | Message) -> bytes:
    """One frame."""
    return _START + _ENCODER.encode(message) + _END


class Frames:
    """Messages out of a stream of bytes that may hold anything else besides.

    `kind` is `Message` or `Command`. What is not a message is dropped and counted in `noise`.
    """

    def __init__(self, kind: Any) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._pending = b""
        self.noise = 0
        """Bytes dropped so far."""

    def feed(self, data: bytes) -> list[Any]:
        """The messages that `data` completes."""
        *frames, self._pending = self._split(self._pending + data)
        return [message for frame in frames if (message := self._decode(frame)) is not None]

    def _split(self, data: bytes) -> list[bytes]:
        """Frames without separators; the last one, perhaps empty, is still unfinished."""
        before, *starts = data.split(_START)
        self.noise += len(before)
        if not starts:
            return [b""]
        frames = [self._cut(text) for text in starts[:-1]]
        if _END in starts[-1]:
            return [*frames, self._cut(starts[-1]), b""]
        return [*frames, _START + starts[-1]]

    def _cut(self, text: bytes) -> bytes:
        frame, _, after = text.partition(_END)
        self.noise += len(after)
        return frame

    def _decode(self, frame: bytes) -> Any:
        try:
            return self._decoder.decode(frame)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.noise += len(frame)
            return None
