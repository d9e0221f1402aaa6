"""How source rules are tested: code whose lines say which of them a rule must find."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from scanner.records import Target
from scanner.source.check import Checker, RuleHit
from scanner.source.interface import SourceRule
from scanner.source.module import Module
from scanner.source.rules import RULES

__all__ = ["assert_hits", "hits_of", "rule"]

OFFERS: dict[str, set[str]] = {
    "none": set(),
    "safe": {"safe"},
    "unsafe": {"unsafe"},
    "mixed": {"safe", "unsafe"},
}


def rule(id: str) -> SourceRule:
    """The rule with this id."""
    return next(each for each in RULES if each.id == id)


def hits_of(
    subject: SourceRule | str, code: str, targets: Sequence[Target] = ()
) -> tuple[Module, list[RuleHit]]:
    """What one rule says of dedented code; nothing where its tokens are missing."""
    subject = rule(subject) if isinstance(subject, str) else subject
    checker = Checker([subject], targets)
    text = textwrap.dedent(code).lstrip("\n")
    module = Module(text)
    found = checker.hits(module) if checker.may_hit(text) else []
    corrections = [each.hit.correction for each in found if each.hit.correction]
    offered = {"safe" if each.safe else "unsafe" for each in corrections}
    assert offered <= OFFERS[subject.fixes], "the rule does not declare its corrections"
    return module, found


def assert_hits(
    subject: SourceRule | str, code: str, targets: Sequence[Target] = ()
) -> list[RuleHit]:
    """Every line that ends in `# hit` has one hit (`# hit 2`: two), and no other line has any."""
    module, found = hits_of(subject, code, targets)
    wanted: list[int] = []
    for number, line in enumerate(module.lines, start=1):
        _, marked, count = line.partition("# hit")
        wanted += [number] * (int(count or 1) if marked else 0)
    assert [each.hit.span.line for each in found] == wanted
    return found
