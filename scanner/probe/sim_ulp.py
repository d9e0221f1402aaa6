"""Whether what a simulated release does hangs on how exact a GPU's approximate functions are."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import msgspec

from scanner.probe.runner import Ran
from scanner.records import Status
from scanner.sim.shaders.functions.interface import Direction, Ulp, directions

__all__ = ["UlpOptions", "weighed"]

_WORDS = {"native": "agrees", "nan": "NaN or infinity", "unknown": "not known"}


class UlpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    ulp: Ulp = "nearest"
    """`worst` also runs approximate functions at the ends of their allowed error."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Where approximate functions are run besides the nearest value."""
        return directions(self.ulp) if self.ulp == "worst" else ()


def weighed(nearest: Ran, ends: Mapping[Direction, Ran]) -> Ran:
    """What was found at the nearest values, or *unknown* where an end says otherwise.

    A GPU may return anything between the ends, so neither side is proven. The detail's `ulp` is
    `{"depends": bool, "statuses": {direction: status}}`.
    """
    statuses: dict[Direction, Status] = {"nearest": nearest.status}
    statuses |= {direction: ran.status for direction, ran in ends.items()}
    depends = len(set(statuses.values())) > 1
    detail = {**nearest.detail, "ulp": {"depends": depends, "statuses": statuses}}
    if not depends:
        return msgspec.structs.replace(nearest, detail=detail)
    return Ran(status="unknown", reason=_reason(nearest, ends), detail=detail)


def _reason(nearest: Ran, ends: Mapping[Direction, Ran]) -> str:
    """`agrees with approximate functions at their nearest; wrong at the end of …`."""
    others = [(direction, ran) for direction, ran in ends.items() if ran.status != nearest.status]
    told = [
        f"{_word(same[0][1])} at the end of their allowed error "
        f"({', '.join(direction for direction, _ in same)})"
        + (f": {same[0][1].reason}" if same[0][1].reason else "")
        for _, group in groupby(sorted(others, key=_status), key=_status)
        for same in [list(group)]
    ]
    return "; ".join([f"{_word(nearest)} with approximate functions at their nearest", *told])


def _status(pair: tuple[Direction, Ran]) -> str:
    return pair[1].status


def _word(ran: Ran) -> str:
    return _WORDS.get(ran.status, ran.status)
