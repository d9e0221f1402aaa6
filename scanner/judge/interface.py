"""What judging needs to know about ops: the part of `opdb.query` that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from scanner.records import Evidence, Status

__all__ = ["Fact", "Knowledge"]


class Fact(Protocol):
    """What one release does with one op, whatever its arguments; see `opdb.query.OpFact`."""

    @property
    def status(self) -> Status:
        """Without the fallback variable."""

    @property
    def evidence(self) -> Evidence | None:
        """None when the status is unknown."""

    @property
    def reason(self) -> str:
        """One clause."""

    @property
    def registered(self) -> str | None:
        """What is registered for MPS: `kernel`, `fallback`, `raises`, or None."""

    @property
    def fixed_in(self) -> str | None:
        """First later release with a kernel, when the status is a complaint."""

    @property
    def links(self) -> tuple[str, ...]:
        """Pages that say more."""


class Knowledge(Protocol):
    """The database; the module `opdb.query` is one."""

    def fact(self, op: str, release: str) -> Fact:
        """What `release` does with `op`; an op it does not know has status `unknown`."""

    def registered(self, release: str, key: str) -> Mapping[str, str]:
        """Every op registered in `release` for a dispatch key, and what is registered."""
