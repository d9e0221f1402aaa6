"""Source rules, one theme a file. A new file's `RULES` are added to the list below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from scanner.source.interface import SourceRule
from scanner.source.rules import api_calls, autocast, devices, dtypes

if TYPE_CHECKING:
    from scanner.records import Target

__all__ = ["RULES", "rules_for"]

RULES: tuple[SourceRule, ...] = (*devices.RULES, *dtypes.RULES, *autocast.RULES, *api_calls.RULES)


def rules_for(targets: Iterable[Target]) -> tuple[SourceRule, ...]:
    """All rules, those about calls by name as they are for these targets."""
    rest = (rule for rule in RULES if rule not in api_calls.RULES)
    return (*rest, *api_calls.rules_for(targets))
