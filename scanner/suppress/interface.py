"""What a user can accept, and everything that deciding it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Annotated

import msgspec

from scanner.judge.gate import Gate
from scanner.records import LineIgnore, Location

__all__ = ["Baseline", "Entry", "Ignore", "Policy", "can_be_suppressed"]

_PROTECTED = ("OPS8", "OPS9")
"""Stale ignores, and what kept opscan from judging."""


def can_be_suppressed(rule: str) -> bool:
    """Whether an ignore or a baseline may hide a rule's findings."""
    return not rule.startswith(_PROTECTED)


class Ignore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[tool.opscan.ignore]]`. A finding must fit every field that is given."""

    reason: str
    rule: str | None = None
    op: str | None = None
    """`aten::mm`, `aten::linalg_*`; without an overload it means all of them."""
    dtype: str | None = None
    """Of one of the op's inputs."""
    file: str | None = None
    """As `models/*.py`, relative to the settings file; `*` matches `/` too."""
    model: str | None = None
    """`Net`, or `nets/gp.py:ExactGP`."""
    target: str | None = None
    """As `torch==2.9*`."""
    expires: date | None = None
    """The last day on which it holds."""
    issue: str | None = None
    """A link."""
    place: Location | None = None
    """Where it is written; filled in by opscan."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a baseline: findings of one fingerprint in one place."""

    file: str = ""
    model: str = ""
    """`nets/gp.py:ExactGP`; empty for findings about source code."""
    rule: Annotated[str, msgspec.Meta(pattern=r"^OPS\d{3}$")]
    op: str = ""
    dtypes: str = ""
    module: str = ""
    code: str = ""
    fingerprint: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32,64}$")]
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    reason: str | None = None
    """Why it was accepted, where somebody said so."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Findings that were known before."""

    name: str
    """How the user calls it: a file, relative to the working directory, or a revision."""
    entries: tuple[Entry, ...] = ()
    report_fixed: bool = True
    """Whether entries that no longer match are findings; not for a report or revision."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What has been accepted, and how the rest is weighed."""

    today: date
    gate: Gate = field(default_factory=Gate)
    ignores: tuple[Ignore, ...] = ()
    lines: tuple[LineIgnore, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    prefix: str = ""
    """From the settings file's directory to the working directory: `packages/nets/`, or empty."""

    @property
    def is_empty(self) -> bool:
        """Whether it leaves every report as it is."""
        return not (self.ignores or self.lines or self.baselines)
