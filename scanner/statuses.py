"""How statuses compare."""

from __future__ import annotations

from typing import get_args

from scanner.records import Status

__all__ = ["SEVERITY_ORDER"]

SEVERITY_ORDER: tuple[Status, ...] = (
    "crash",
    "unsupported",
    "wrong",
    "nan",
    "fallback",
    "slow",
    "unknown",
    "skipped",
    "composite",
    "native",
)
"""Statuses, worst first."""

assert set(SEVERITY_ORDER) == set(get_args(Status))
