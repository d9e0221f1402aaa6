"""A rule as a page: the same text for `opscan explain` and `docs/rules/`."""

from __future__ import annotations

from collections.abc import Iterable

from scanner.rule import Documented

__all__ = ["index_page", "rule_page"]


_FIX = {
    "none": "",
    "safe": " `opscan fix` mends it.",
    "unsafe": " `opscan fix --unsafe` mends it.",
    "mixed": " `opscan fix` mends it, in part only with `--unsafe`.",
}


def rule_page(rule: Documented) -> str:
    """Markdown: title, one line of facts, summary, explanation."""
    return (
        f"# {rule.id} {rule.name}\n\n"
        f"Severity: {rule.severity}. Since opscan {rule.since}.{_FIX[rule.fixes]}\n\n"
        f"{rule.summary}\n\n{rule.explanation}\n"
    )


def index_page(rules: Iterable[Documented]) -> str:
    """Markdown: all rules in one table, each linked to its page."""
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.severity} | {rule.summary} |"
        for rule in rules
    ]
    head = ["# Rules", "", "| id | name | severity | summary |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"
