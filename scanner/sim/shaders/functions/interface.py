"""What a lowering is: an external function, its class, and LLVM text that defines it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Body",
    "Bound",
    "Direction",
    "External",
    "Family",
    "Kind",
    "Lower",
    "Ulp",
    "directions",
]

Kind = Literal["exact", "ieee", "approximate", "cooperative", "unsupported"]
"""exact: one possible result (integers, selections, bits). ieee: correctly rounded.
approximate: within a bound that the Metal specification gives. cooperative: needs the other
threads of a simdgroup or threadgroup. unsupported: cannot be run here."""

Direction = Literal["nearest", "up", "down", "odd", "even"]
"""Where in the allowed error approximate functions end: the nearest value, or an end of it.

`odd` ends above the nearest value where that value's last bit is set and below it elsewhere, `even`
the other way round: a choice for each value that repeats, for errors that `up` and `down` cancel.
"""

Ulp = Literal["nearest", "worst"]
"""How much of the allowed error is looked at."""


def directions(ulp: Ulp) -> tuple[Direction, ...]:
    """The directions in which a call is to be run.

    Sums see most of the error when all terms err alike, differences and quotients when
    neighbours err in opposite ways.
    """
    return ("nearest",) if ulp == "nearest" else ("up", "down", "odd", "even")


@dataclass(frozen=True)
class Bound:
    """Allowed error of an approximate function, in units in the last place.

    It is `ulps + floor(|per_argument * x|)`, and `absolute` besides. Source: Metal Shading Language
    Specification, "Relative Error as ULPs" (precise, fast and half-precision tables).
    """

    ulps: int
    per_argument: float = 0.0
    absolute: float = 0.0
    """Error that does not shrink with the result."""
    limit: float | None = None
    """The function's own range: no implementation returns a magnitude above it."""


@dataclass(frozen=True)
class External:
    """A function that a kernel declares and calls."""

    name: str
    result: str
    """LLVM type."""
    arguments: tuple[str, ...]
    """LLVM types, without attributes."""

    @property
    def parts(self) -> list[str]:
        """The name's dotted parts, without the leading `air`."""
        return self.name.split(".")[1:]

    @property
    def operation(self) -> str:
        """The first part, without the mark of the fast or precise variant."""
        return re.sub(r"^(fast|precise)_", "", self.parts[0])

    @property
    def signed(self) -> bool:
        """Whether an integer operation is marked signed."""
        return len(self.parts) > 1 and self.parts[1] == "s"

    def parameters(self) -> str:
        """`float %0, float %1`: the parameter list of a definition."""
        return ", ".join(f"{t} %{chr(97 + i)}" for i, t in enumerate(self.arguments))


@dataclass(frozen=True)
class Body:
    """The inside of a definition, whose parameters are called %a, %b, %c …"""

    text: str
    needs: tuple[str, ...] = field(default=())
    """Declarations and helper definitions, each a whole top-level entity."""


Lower = Callable[[External, Direction], Body]


@dataclass(frozen=True)
class Family:
    """Externals that one lowering covers."""

    pattern: str
    """A regular expression that the whole name matches."""
    kind: Kind
    lower: Lower | None
    """None where LLVM knows the function itself, or nothing here can run it."""
    bound: Bound | None = None
    note: str = ""
    """Why it is unsupported, or what the specification leaves open."""
