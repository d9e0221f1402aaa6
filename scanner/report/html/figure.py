"""What a figure of the page is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Figure", "basis_of"]

_SIMULATOR = "metal-sim"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A plot, a table of the same figures, or both."""

    title: str
    basis: str
    """`measured`, `simulated` or `estimated`."""
    where: str
    """What measured it, or how it was estimated."""
    chart: str = ""
    legend: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    notes: tuple[str, ...] = ()
    is_folded: bool = False
    """Whether the table repeats what the chart shows."""


def basis_of(device: str) -> str:
    """`simulated` for the simulator, which measures nothing."""
    return "simulated" if device.startswith(_SIMULATOR) else "measured"
