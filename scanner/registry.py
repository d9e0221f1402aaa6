"""Every rule of opscan, whatever stage applies it: `RULES` by id, in order of id."""

from __future__ import annotations

from collections.abc import Iterable

from scanner.judge.rules import RULES as JUDGED
from scanner.rule import Documented
from scanner.source.rules import RULES as OF_SOURCE
from scanner.suppress.rules import RULES as ABOUT_IGNORES

__all__ = ["RULES", "by_id"]


def by_id(rules: Iterable[Documented]) -> dict[str, Documented]:
    """Id → rule, sorted. Raises `ValueError` for an id or a name that two rules have."""
    found: dict[str, Documented] = {}
    names: set[str] = set()
    for rule in rules:
        if rule.id in found or rule.name in names:
            raise ValueError(f"two rules have the id {rule.id} or the name {rule.name}")
        found[rule.id] = rule
        names.add(rule.name)
    return dict(sorted(found.items()))


RULES = by_id([*JUDGED.values(), *OF_SOURCE, *ABOUT_IGNORES])
