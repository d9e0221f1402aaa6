"""Ignores meet findings: which are hidden, and which ignores are stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import msgspec

from scanner.judge.findings import fingerprint
from scanner.records import Finding, LineIgnore, Location, Report
from scanner.report.found import Found
from scanner.suppress.interface import Ignore, Policy, can_be_suppressed
from scanner.suppress.reach import Reach, matches_file, matches_model, matches_op
from scanner.suppress.rules import RULES, Accepted

__all__ = ["Ignored", "advise"]

Used = tuple[str, int]


class Ignored:
    """What a policy's ignores do to the findings of one report."""

    def __init__(self, policy: Policy, known: Sequence[str]) -> None:
        self._policy = policy
        self._known = frozenset(known)
        self._lines: dict[str, list[LineIgnore]] = {}
        for line in sorted(policy.lines, key=lambda line: line.covers):
            self._lines.setdefault(line.file, []).append(line)
        self._settings = [each for each in policy.ignores if not self._expired(each)]
        self._used: set[tuple[LineIgnore, str]] = set()
        self._matched: set[Ignore] = set()

    def apply(self, found: Found) -> Finding:
        """The finding, hidden where an ignore fits; the one next to it in the code is preferred."""
        finding = found.finding
        if not can_be_suppressed(finding.rule):
            return finding
        lines = [each for each in self._at(finding.location) if finding.rule in each.rules]
        self._used.update((each, finding.rule) for each in lines)
        matched = [each for each in self._settings if self._fits(each, found)]
        self._matched.update(matched)
        if reasons := [each.reason for each in lines if each.reason]:
            return _hidden(finding, reasons[0], "line")
        return _hidden(finding, matched[0].reason, "settings") if matched else finding

    def stale(self, report: Report) -> Iterator[Finding]:
        """OPS80x about ignores, after all findings were seen."""
        reach = Reach(report)
        for line in self._policy.lines:
            yield from self._of_line(line, reach)
        for ignore in self._policy.ignores:
            yield from self._of_settings(ignore, reach)

    def _at(self, location: Location | None) -> Iterator[LineIgnore]:
        if location is None:
            return
        end = location.end_line or location.line
        for line in self._lines.get(location.file, ()):
            if location.line <= line.covers <= end:
                yield line

    def _fits(self, ignore: Ignore, found: Found) -> bool:
        finding = found.finding
        model = ignore.model is None or (
            found.model is not None and matches_model(found.model, ignore.model)
        )
        return (
            model
            and (ignore.rule is None or ignore.rule == finding.rule)
            and (ignore.op is None or matches_op(finding.op, ignore.op))
            and (ignore.target is None or fnmatchcase(finding.target, ignore.target))
            and (ignore.dtype is None or ignore.dtype in finding.dtypes)
            and (ignore.file is None or matches_file(self._policy.prefix + found.file, ignore.file))
        )

    def _expired(self, ignore: Ignore) -> bool:
        return ignore.expires is not None and self._policy.today > ignore.expires

    def _of_line(self, line: LineIgnore, reach: Reach) -> Iterator[Finding]:
        place = Location(file=line.file, line=line.line, code=line.code)
        if mistake := _mistake(line):
            case = Accepted(subject=f"`{line.code}`", mistake=mistake)
            yield from advise(case, place)
            return
        for rule in dict.fromkeys(line.rules):
            subject = f"the ignore of {rule}"
            if rule not in self._known or not can_be_suppressed(rule):
                yield from advise(self._not_a_rule(subject, rule), place)
            elif (line, rule) not in self._used and reach.of_line(rule, line.file, line.covers):
                yield from advise(Accepted(subject=subject, rule=rule, unused=True), place)

    def _of_settings(self, ignore: Ignore, reach: Reach) -> Iterator[Finding]:
        subject = f"the ignore of {_described(ignore)}"
        if ignore.rule and (ignore.rule not in self._known or not can_be_suppressed(ignore.rule)):
            yield from advise(self._not_a_rule(subject, ignore.rule), ignore.place)
        elif self._expired(ignore):
            case = Accepted(subject=subject, expired=str(ignore.expires))
            yield from advise(case, ignore.place)
        elif ignore not in self._matched and reach.of_ignore(ignore, self._policy.prefix):
            yield from advise(Accepted(subject=subject, unused=True), ignore.place)

    def _not_a_rule(self, subject: str, rule: str) -> Accepted:
        known = rule in self._known
        near = get_close_matches(rule, sorted(filter(can_be_suppressed, self._known)), n=1)
        return Accepted(
            subject=subject,
            rule=rule,
            unknown=not known,
            protected=known,
            near=near[0] if near else "",
        )


def advise(case: Accepted, place: Location | None) -> Iterator[Finding]:
    """What the rules say about one ignore or line of a baseline."""
    for rule in RULES:
        if (advice := rule.check(case)) is not None:
            yield Finding(
                rule=rule.id,
                severity=rule.severity,
                target="",
                op="",
                message=advice.message,
                remedy=advice.remedy,
                location=place,
                fingerprint=fingerprint((rule.id, place.file if place else "", advice.message)),
            )


def _hidden(finding: Finding, reason: str, by: str) -> Finding:
    return msgspec.structs.replace(finding, suppressed=reason, suppressed_by=by)


def _mistake(line: LineIgnore) -> str:
    if not line.rules:
        return "it names no rule"
    return "" if line.reason else "it gives no reason"


def _described(ignore: Ignore) -> str:
    fields: Iterable[tuple[str, str | None]] = (
        ("rule", ignore.rule),
        ("op", ignore.op),
        ("dtype", ignore.dtype),
        ("file", ignore.file),
        ("model", ignore.model),
        ("target", ignore.target),
    )
    return ", ".join(
        f"{name} {value}" if name != "rule" else value for name, value in fields if value
    )
