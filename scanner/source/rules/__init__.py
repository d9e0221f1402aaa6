"""Source rules, one theme a file. A new file's `RULES` are added to the list below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from scanner.source.interface import SourceRule
from scanner.source.rules import (
    api_calls,
    autocast,
    autocast_devices,
    copies,
    cuda_calls,
    data,
    device_arguments,
    device_comparisons,
    devices,
    distributed,
    double,
    dtypes,
    environment,
    numpy_arrays,
    packages,
    speedups,
    tensorflow,
    trainers,
    training_loops,
)

if TYPE_CHECKING:
    from scanner.records import Target

__all__ = ["RULES", "rules_for"]

RULES: tuple[SourceRule, ...] = (
    *devices.RULES,
    *device_arguments.RULES,
    *device_comparisons.RULES,
    *cuda_calls.RULES,
    *dtypes.RULES,
    *double.RULES,
    *numpy_arrays.RULES,
    *data.RULES,
    *copies.RULES,
    *autocast.RULES,
    *autocast_devices.RULES,
    *speedups.RULES,
    *distributed.RULES,
    *packages.RULES,
    *environment.RULES,
    *training_loops.RULES,
    *trainers.RULES,
    *tensorflow.RULES,
    *api_calls.RULES,
)


def rules_for(targets: Iterable[Target]) -> tuple[SourceRule, ...]:
    """All rules, those about calls by name as they are for these targets."""
    rest = (rule for rule in RULES if rule not in api_calls.RULES)
    return (*rest, *api_calls.rules_for(targets))
