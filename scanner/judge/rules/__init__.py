"""The registry of rules: `RULES` by id, in order of id."""

from __future__ import annotations

from typing import Any

from scanner.judge.rules import (
    contradiction,
    executed,
    known,
    measured,
    scan_problems,
    support,
    whole,
)
from scanner.judge.rules.interface import Advice, OpCase, Problem, Rule

__all__ = [
    "RULES",
    "Advice",
    "OpCase",
    "Problem",
    "Rule",
    "about_capture",
    "about_execution",
    "about_issues",
    "about_ops",
]

about_ops: tuple[Rule[OpCase], ...] = support.RULES
"""Rules that look at one op configuration on one target."""
about_issues: tuple[Rule[OpCase], ...] = known.RULES
"""Rules that look at one known issue of one op configuration on one target."""
about_execution: tuple[Rule[OpCase], ...] = executed.RULES
"""Rules that look at what one op configuration that runs did when a release was executed."""
about_capture: tuple[Rule[Problem], ...] = scan_problems.RULES
"""Rules that look at what kept a model from being judged."""


def _registry() -> dict[str, Rule[Any]]:
    rules: dict[str, Rule[Any]] = {}
    every: list[Rule[Any]] = [
        *about_ops,
        *about_issues,
        *about_execution,
        *measured.RULES,
        *measured.VARIANT_RULES,
        *whole.RULES,
        *contradiction.RULES,
        *about_capture,
    ]
    for rule in every:
        if rule.id in rules:
            raise ValueError(f"two rules have the id {rule.id}")
        rules[rule.id] = rule
    return dict(sorted(rules.items()))


RULES: dict[str, Rule[Any]] = _registry()
