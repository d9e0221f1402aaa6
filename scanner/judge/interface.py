"""What judging needs from the database: the part of `opdb.query` that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from opdb.facts import OpFact
from opdb.simulated import Simulated
from scanner.records import OpCall, Target

if TYPE_CHECKING:
    from opdb.issues.match import Match

__all__ = ["Knowledge", "OpFact"]


class Knowledge(Protocol):
    """Facts about ops; the module `opdb.query` is one."""

    def lookup(self, op: str, release: str, key: str = "MPS") -> OpFact:
        """What `release` does with `op` under a dispatch key; `unknown` when it has no such op."""

    def issues(self, call: OpCall, target: Target) -> tuple[Match, ...]:
        """Known issues that apply, or may apply, to a configuration on a target."""

    def simulated(
        self, op: str, dtype: str, release: str, macos: str | None = None, layout: str = "any"
    ) -> Simulated | None:
        """What was seen when `release` was executed with such a call; None where it was not."""

    def missing_callee(self, op: str, release: str) -> Simulated | None:
        """What was seen of an op whose calls all end in the lack of one other kernel."""
