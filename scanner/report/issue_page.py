"""A known issue as text."""

from __future__ import annotations

from collections.abc import Iterator

from opdb.issues.records import Confidence, Issue

__all__ = ["issue_line", "issue_page"]

_CONFIDENCE: dict[Confidence, str] = {
    "verified": "the release's code was read or executed on both sides",
    "stated": "as the thread or the release notes say",
    "inferred": "inferred from the date of the fix",
    "unverified": "not verified",
}


def issue_line(issue: Issue) -> str:
    """Id, effect, releases and title on one line."""
    return f"  {issue.id}  [{issue.effect}, torch {_either(issue.torch)}]  {issue.title}"


def issue_page(issue: Issue) -> str:
    """Everything that is known of it, in the order in which one asks."""
    return "\n".join([f"{issue.id}: {issue.title}", "", *_facts(issue), ""])


def _facts(issue: Issue) -> Iterator[str]:
    yield f"Ops:        {', '.join(issue.ops)}"
    yield f"Effect:     {issue.effect}"
    yield f"Condition:  {issue.condition or 'always'}"
    yield f"Releases:   torch {_either(issue.torch)} ({_CONFIDENCE[issue.confidence]})"
    if issue.macos:
        yield f"macOS:      {_either(issue.macos)}"
    if issue.chips:
        yield f"Chips:      {', '.join(issue.chips)}"
    yield f"Fixed in:   {f'torch {issue.fixed_in}' if issue.fixed_in else 'no release known'}"
    if issue.workaround:
        yield f"Instead:    {issue.workaround}"
    yield f"Evidence:   {issue.evidence}, recorded {issue.since}"
    yield from (f"            {link}" for link in issue.links)
    if issue.note:
        yield f"Note:       {issue.note}"
    yield "Example:    " + issue.hits[0]


def _either(specifiers: tuple[str, ...]) -> str:
    return " or ".join(specifiers)
