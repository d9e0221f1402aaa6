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
    text = _rule(subject) or _issue(subject) or _op(subject)
    if not text:
        raise UsageError(f"{subject} is no rule, operator or known issue", remedy=_near(subject))
    sys.stdout.write(text)
    return 0


def _rule(subject: str) -> str:
    """The rule's page; empty when the subject is no rule."""
    from scanner.registry import RULES
    from scanner.report.rule_page import rule_page

    for rule in RULES.values():
        if subject.lower() in {rule.id.lower(), rule.name}:
            return rule_page(rule)
    if _RULE_ID.fullmatch(subject):
        raise UsageError(
            f"there is no rule {subject}", remedy=f"Rules: {_family(subject.upper())}."
        )
    return ""


def _family(text: str) -> str:
    """Rules whose ids begin as an unknown one does; all of them where none do."""
    from scanner.registry import RULES

    starts = (text[:length] for length in range(len(text), len("OPS"), -1))
    families = ([rule for rule in RULES if rule.startswith(start)] for start in starts)
    return ", ".join(next(filter(None, families), list(RULES)))


def _issue(subject: str) -> str:
    """The issue's page; empty when the subject is none."""
    if "-" not in subject:  # ids have one, operators have none
        return ""
    from opdb.issues.book import default
    from scanner.report.issue_page import issue_page

    issue = default.named(subject.lower())
    return issue_page(issue) if issue else ""


def _op(subject: str) -> str:
    """The operator's history and issues; empty when no release has one of that name."""
    from opdb import query
    from scanner.cli.op_text import history

    exact = any(query.lookup(subject, release).exists for release in query.releases())
    op = subject if exact else query.resolve(subject)
    return history(op) + ("" if exact else _others(op)) + _known(op) if op else ""


def _others(op: str) -> str:
    """The overloads that a name means besides the one that is shown."""
    from opdb.names import overloads

    others = [each for each in overloads(op) if each != op]
    return f"\nOther overloads: {', '.join(others)}\n" if others else ""


def _near(subject: str) -> str:
    """What may be meant, among rules, operators and issues."""
    import difflib

    from opdb import query
    from opdb.issues.book import default
    from scanner.registry import RULES

    word = subject.lower().replace("_", "-").removeprefix("aten::")
    named = [*(rule.name for rule in RULES.values()), *(e.issue.id for e in default.entries)]
    close = difflib.get_close_matches(word, named, 3, cutoff=0.75)
    found = [*close, *query.suggest(subject, 5 - len(close))]
    if found:
        return f"Did you mean {', '.join(found)}?"
    return "`opscan db list` names all operators; rules are named OPS101 and so on."


def _known(subject: str) -> str:
    """Known issues of an op, one a line; empty when there are none."""
    from opdb.facts import plain, qualified
    from opdb.issues.book import default
    from scanner.report.issue_page import issue_line

    lines = [issue_line(entry.issue) for entry in default.about(qualified(plain(subject)))]
    return "\n".join(["\nKnown issues:", *lines, ""]) if lines else ""
