"""Source rules, one theme a file. A new file's `RULES` are added to the list below."""

from __future__ import annotations

from scanner.source.interface import SourceRule
from scanner.source.rules import autocast, devices, dtypes

__all__ = ["RULES"]

RULES: tuple[SourceRule, ...] = (*devices.RULES, *dtypes.RULES, *autocast.RULES)
