"""Rules as SARIF describes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scanner.registry import RULES
from scanner.report.rule_page import rule_page
from scanner.rule import Documented

__all__ = ["descriptors"]

_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_SUBJECTS = {
    "1": "support",
    "2": "correctness",
    "3": "performance",
    "4": "memory",
    "5": "environment",
    "6": "source",
    "8": "suppression",
    "9": "scan",
}
"""Digit after OPS → what its rules are about."""


def descriptors(ids: Iterable[str]) -> list[dict[str, Any]]:
    """A reportingDescriptor for each id, sorted; ids of other versions have no text."""
    return [_descriptor(RULES[each]) if each in RULES else {"id": each} for each in sorted(ids)]


def _descriptor(rule: Documented) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation.split("\n\n", 1)[0] or rule.summary},
        "help": {"text": f"{rule.summary}\n\n{rule.explanation}", "markdown": rule_page(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["apple-silicon", "mps", _SUBJECTS.get(rule.id[3:4], "opscan")]},
    }
