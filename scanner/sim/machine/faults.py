"""Why emulated code could not be run to its end.

    Fault                        an access violation, an illegal instruction, an abort
    ├── MissingImport            it called something that nobody serves
    │   └── MissingSelector      … of the Objective-C kind
    └── BudgetSpent              it did not come back in time

Each makes the outcome of a call *unknown*, with the text as its reason.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BudgetSpent", "Fault", "MissingImport", "MissingSelector"]


class Fault(Exception):  # noqa: N818
    """Emulated code cannot go on. `frames` are guest return addresses, innermost first."""

    def __init__(self, reason: str, frames: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.frames = list(frames)


class MissingImport(Fault):
    """A function of the operating system that is not imitated."""

    def __init__(self, name: str) -> None:
        super().__init__(f"host function {name.removeprefix('_')} is not imitated")
        self.name = name


class MissingSelector(MissingImport):
    """A method of a system class that is not imitated."""

    def __init__(self, receiver: str, selector: str) -> None:
        Fault.__init__(self, f"method [{receiver} {selector}] is not imitated")
        self.name = f"[{receiver} {selector}]"


class BudgetSpent(Fault):
    """Emulated code ran for longer than it may."""
