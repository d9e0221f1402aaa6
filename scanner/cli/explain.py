"""`opscan explain OPS102` or `opscan explain aten::linalg_eigh`."""

from __future__ import annotations

import re
import sys

import click

from scanner.errors import UsageError

__all__ = ["command"]

_RULE_ID = re.compile(r"OPS\d+", re.IGNORECASE)


@click.command("explain", short_help="Explain a rule, or an op through all releases.")
@click.argument("subject", metavar="RULE|OP")
def command(subject: str) -> int:
    """Explain a rule (OPS102, cpu-fallback) or what every release does with an op."""
    sys.stdout.write(_rule(subject) or _op(subject))
    return 0


def _rule(subject: str) -> str:
    """The rule's page; empty when the subject is no rule."""
    from scanner.judge.rules import RULES
    from scanner.report.rule_page import rule_page

    for rule in RULES.values():
        if subject.lower() in {rule.id.lower(), rule.name}:
            return rule_page(rule)
    if _RULE_ID.fullmatch(subject):
        raise UsageError(f"there is no rule {subject}", remedy=f"Rules: {', '.join(RULES)}.")
    return ""


def _op(subject: str) -> str:
    from opdb import query
    from scanner.cli.op_text import history, unknown_op

    if not any(query.lookup(subject, release).exists for release in query.releases()):
        raise unknown_op(subject)
    return history(subject)
