"""What a call through the MPS backend did, as seen from outside it."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "Allocation",
    "Binding",
    "Blit",
    "Commit",
    "Dispatch",
    "Event",
    "GraphNode",
    "GraphRun",
    "Launch",
    "Outcome",
]

Outcome = Literal["native-shader", "native-graph", "fallback", "raises", "unknown"]
"""How a call ended. `unknown` always comes with the reason; it is never a pass."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something the host code did, in order."""


class Dispatch(_Event, frozen=True, kw_only=True, tag="dispatch"):
    """The dispatcher entered an operator."""

    op: str
    depth: int
    """0 for the operator that was called."""


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of a kernel launch."""

    index: int
    kind: Literal["buffer", "bytes", "threadgroup"]
    address: int = 0
    """Host address of the first byte the kernel sees (buffer and bytes)."""
    length: int = 0
    """Bytes that may be touched from `address` on; for threadgroup memory its size."""
    before: int = 0
    """Bytes of the same buffer that lie before `address`: negative strides reach them."""
    slack: int = 0
    """The last bytes of `length` that nobody asked for: the allocator rounded the buffer up."""


class Launch(_Event, frozen=True, kw_only=True, tag="launch"):
    """A Metal kernel was encoded."""

    kernel: str
    grid: tuple[int, int, int]
    """Threads for `threads`, threadgroups for `threadgroups`."""
    threadgroup: tuple[int, int, int]
    mode: Literal["threads", "threadgroups"]
    bindings: tuple[Binding, ...]


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """One method called on an MPSGraph."""

    selector: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class GraphRun(_Event, frozen=True, kw_only=True, tag="graph"):
    """An MPSGraph was run."""

    nodes: tuple[GraphNode, ...]


class Blit(_Event, frozen=True, kw_only=True, tag="blit"):
    """A copy or fill was encoded."""

    kind: Literal["copy", "fill"]
    nbytes: int


class Commit(_Event, frozen=True, kw_only=True, tag="commit"):
    """A command buffer was committed; with `wait`, the CPU waited for it: a host sync."""

    wait: bool


class Allocation(_Event, frozen=True, kw_only=True, tag="allocation"):
    """Device memory was taken or given back."""

    kind: Literal["allocate", "free"]
    nbytes: int


Event = Dispatch | Launch | GraphRun | Blit | Commit | Allocation
