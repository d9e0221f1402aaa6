"""`opscan explain OPS102`, `opscan explain aten::linalg_eigh`, `opscan explain ISSUE`."""

from __future__ import annotations

import re
import sys

import click

from scanner.cli.completers import subjects
from scanner.errors import UsageError

__all__ = ["command"]

_RULE_ID = re.compile(r"OPS\d+", re.IGNORECASE)


@click.command("explain", short_help="Explain a rule, an op or a known issue.")
@click.argument("subject", metavar="RULE|OP|ISSUE", shell_complete=subjects)
def command(subject: str) -> int:
    """Explain a rule (OPS102, cpu-fallback), a known issue, or an op through all releases."""
    sys.stdout.write(_rule(subject) or _issue(subject) or _op(subject))
    return 0


def _rule(subject: str) -> str:
    """The rule's page; empty when the subject is no rule."""
    from scanner.registry import RULES
    from scanner.report.rule_page import rule_page

    for rule in RULES.values():
        if subject.lower() in {rule.id.lower(), rule.name}:
            return rule_page(rule)
    if _RULE_ID.fullmatch(subject):
        raise UsageError(f"there is no rule {subject}", remedy=f"Rules: {', '.join(RULES)}.")
    return ""


def _issue(subject: str) -> str:
    """The issue's page; empty when the subject is none."""
    if "-" not in subject:  # ids have one, operators have none
        return ""
    from opdb.issues.book import default
    from scanner.report.issue_page import issue_page

    issue = default.named(subject.lower())
    return issue_page(issue) if issue else ""


def _op(subject: str) -> str:
    from opdb import query
    from scanner.cli.op_text import history, unknown_op

    if not any(query.lookup(subject, release).exists for release in query.releases()):
        raise unknown_op(subject)
    return history(subject) + _known(subject)


def _known(subject: str) -> str:
    """Known issues of an op, one a line; empty when there are none."""
    from opdb.facts import plain, qualified
    from opdb.issues.book import default
    from scanner.report.issue_page import issue_line

    lines = [issue_line(entry.issue) for entry in default.about(qualified(plain(subject)))]
    return "\n".join(["\nKnown issues:", *lines, ""]) if lines else ""
