"""What a closer look at an op gives: records that encode to JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from scanner.sim.trace import Outcome

__all__ = [
    "Change",
    "Comparison",
    "Difference",
    "Figures",
    "LaunchSeen",
    "OpAnswer",
    "PathStep",
    "Side",
    "Worst",
]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every record: immutable, keyword-only, compared by value."""


class LaunchSeen(_Record, frozen=True, kw_only=True):
    """A kernel that was launched."""

    kernel: str
    grid: tuple[int, int, int]
    """Threads, or threadgroups where `mode` says so."""
    threadgroup: tuple[int, int, int]
    mode: str


class PathStep(_Record, frozen=True, kw_only=True):
    """An operator that the dispatcher entered; 0 is the one that was called."""

    op: str
    depth: int


class Worst(_Record, frozen=True, kw_only=True):
    """The element that is furthest off."""

    output: str
    index: tuple[int, ...]
    input: Any
    """Values of the tensor arguments at that place, where their shapes allow to tell."""
    device: float | str
    reference: float | str


class Figures(_Record, frozen=True, kw_only=True):
    """Results against the CPU in double precision, over all outputs."""

    elements: int
    differs: int
    """Elements that are not the reference rounded to the dtype."""
    max_rel: float | str
    """Largest relative error of finite elements whose reference is neither zero nor subnormal."""
    cpu_max_rel: float | str
    """The CPU's own, in the same dtype."""
    nan_differs: int
    """Elements that are NaN on one side alone."""
    inf_differs: int
    worst: Worst | None = None


class OpAnswer(_Record, frozen=True, kw_only=True):
    """What a release does with one call."""

    op: str
    torch: str
    dtype: str
    outcome: Outcome
    message: str
    """The exact text of an exception, or why the outcome is unknown."""
    launches: tuple[LaunchSeen, ...] = ()
    graph: tuple[str, ...] = ()
    """Methods of MPSGraph and kernels of Metal Performance Shaders, in order."""
    error: Figures | None = None
    """None without results to compare."""
    ends: dict[str, Figures] = {}
    """With `--ulp worst`: the same for each end of what approximate functions may err."""
    macos: str = ""
    gpu: str = ""
    exception: str = ""
    """Its class in Python."""
    args: str = ""
    """As given, or how they were drawn."""
    path: tuple[PathStep, ...] = ()
    fallbacks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    """What shaders did that Metal leaves undefined."""
    waits: int = 0
    """How often the CPU waited for the GPU."""
    allocated: int = 0
    """Bytes that the call took from the device."""


class Side(_Record, frozen=True, kw_only=True):
    """What one release does with a configuration."""

    outcome: Outcome
    message: str = ""


class Change(_Record, frozen=True, kw_only=True):
    """One configuration on two releases."""

    before: Side
    after: Side
    elements: int = 0
    differs: int = 0
    """Elements with other results; NaN equals NaN."""
    max_rel: float | str = 0.0
    """Largest change relative to the earlier result."""
    layout: str = ""
    """How dtype, shape or strides of a result have changed."""


class Difference(_Record, frozen=True, kw_only=True):
    """A configuration that two releases treat differently."""

    kind: str
    """`now-runs`, `now-raises`, `path`, `layout`, `result`."""
    name: str
    """OpInfo entry."""
    op: str
    inputs: str
    attributes: dict[str, Any]
    change: Change


class Comparison(_Record, frozen=True, kw_only=True):
    """Two releases on the same configurations."""

    before: str
    """`Target.id`."""
    after: str
    configurations: int
    unknown: int
    """Of those, how many at least one simulator could not tell about."""
    differences: tuple[Difference, ...]
