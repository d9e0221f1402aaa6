"""What the process that prepares a release tells."""

from __future__ import annotations

import msgspec

__all__ = ["Failed", "News", "Prepared", "Progress", "Step"]


class Step(msgspec.Struct, frozen=True, kw_only=True, tag="step"):
    """Something that takes a while begins."""

    text: str


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """Bytes of the wheel that have arrived."""

    done: int
    total: int


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag="prepared"):
    """The release can be opened."""

    release: str
    folder: str
    nbytes: int
    """On disk."""
    wheel: str
    sha256: str
    """Of the wheel."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """It cannot be prepared."""

    message: str
    remedy: str


News = Step | Progress | Prepared | Failed
