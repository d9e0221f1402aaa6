"""Baselines: findings as a multiset of fingerprints, matched, written and pruned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from scanner.records import Finding, Location, Report
from scanner.report.found import Found, findings_of
from scanner.suppress.ignores import advise
from scanner.suppress.interface import Baseline, Entry, can_be_suppressed
from scanner.suppress.reach import Reach, label_of
from scanner.suppress.rules import Accepted

__all__ = ["baseline_of", "baseline_of_all", "merged", "pruned", "with_baseline", "with_reasons"]

_MILDEST_FIRST = ("note", "warning", "error")


def baseline_of(report: Report, reason: str | None = None) -> tuple[Entry, ...]:
    """Everything that a baseline can hold and no ignore hides, sorted."""
    return merged(_entry(each, reason) for each in findings_of(report) if _counts(each.finding))


def baseline_of_all(reports: Iterable[Report], reason: str | None = None) -> tuple[Entry, ...]:
    """One baseline for each of several reports: as many of a kind as the report with most has."""
    most: dict[Entry, Entry] = {}
    for report in reports:
        for entry in baseline_of(report, reason):
            before = most.get(_bare(entry))
            if before is None or before.count < entry.count:
                most[_bare(entry)] = entry
    return merged(most.values())


def merged(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Entries about the same thing as one with the sum of their counts, sorted."""
    counts: Counter[Entry] = Counter()
    reasons: dict[Entry, str] = {}
    for entry in entries:
        same = _bare(entry)
        counts[same] += entry.count
        if entry.reason:
            reasons.setdefault(same, entry.reason)
    found = (
        msgspec.structs.replace(same, count=number, reason=reasons.get(same))
        for same, number in counts.items()
    )
    return tuple(sorted(found, key=_order))


def with_reasons(entries: Iterable[Entry], before: Iterable[Entry]) -> tuple[Entry, ...]:
    """Entries with the reasons that a baseline written before gives for the same."""
    reasons = {(*_place(each), each.fingerprint): each.reason for each in before if each.reason}
    return tuple(
        msgspec.structs.replace(
            each, reason=each.reason or reasons.get((*_place(each), each.fingerprint))
        )
        for each in entries
    )


def with_baseline(
    found: Sequence[Found], baseline: Baseline, report: Report
) -> tuple[list[Finding], list[Finding]]:
    """The findings, those that were known hidden, and findings about what is fixed.

    Of each fingerprint as many are known as the baseline holds. Where there are more, the new ones
    are those in other files or models than it names, and of these the gravest.
    """
    taken, unused = _matched(found, baseline.entries)
    held = Counter(taken.values())
    findings = [_marked(each.finding, taken.get(at), baseline) for at, each in enumerate(found)]
    fixed: list[Finding] = []
    reach = Reach(report)
    for entry in unused if baseline.report_fixed else ():
        if reach.of_entry(entry):
            left = sum(number for each, number in held.items() if _bare(each) == _bare(entry))
            case = Accepted(subject="", fixed=entry, left=left)
            fixed += advise(case, Location(file=baseline.name, line=1))
    return findings, fixed


def pruned(
    entries: Sequence[Entry], *reports: Report, everything: bool = False
) -> tuple[Entry, ...]:
    """The entries without what is fixed; with `everything`, without all that was not found.

    With several reports, what none shows of those that looked for it.
    """
    looks = [(Reach(report), _unused(entries, report)) for report in reports]
    kept = []
    for entry in merged(entries):
        gone = [
            unused.get(_bare(entry), 0)
            for reach, unused in looks
            if everything or reach.of_entry(entry)
        ]
        if left := entry.count - min(gone, default=0):
            kept.append(msgspec.structs.replace(entry, count=left))
    return tuple(kept)


def _unused(entries: Sequence[Entry], report: Report) -> dict[Entry, int]:
    _, unused = _matched(list(findings_of(report)), entries)
    return {_bare(each): each.count for each in unused}


def _matched(
    found: Sequence[Found], entries: Iterable[Entry]
) -> tuple[dict[int, Entry], list[Entry]]:
    """Index of a finding → the entry that holds it; and what is left of the entries."""
    order = sorted(
        (at for at, each in enumerate(found) if _counts(each.finding)),
        key=lambda at: _MILDEST_FIRST.index(found[at].finding.severity),
    )
    held = merged(entries)
    left = Counter({entry: entry.count for entry in held})
    taken: dict[int, Entry] = {}
    for key_of, key_for in ((_print_and_place, _print_and_place_of), (_print, _print_of)):
        units: dict[Hashable, list[Entry]] = {}
        for entry in reversed(held):  # the first is then taken first
            units.setdefault(key_of(entry), []).extend([entry] * left[entry])
        for at in order:
            if at not in taken and (unit := units.get(key_for(found[at]))):
                taken[at] = unit.pop()
                left[taken[at]] -= 1
    rest = [msgspec.structs.replace(each, count=left[each]) for each in held if left[each]]
    return taken, rest


def _print(entry: Entry) -> Hashable:
    return entry.fingerprint


def _print_of(found: Found) -> Hashable:
    return found.finding.fingerprint


def _print_and_place(entry: Entry) -> Hashable:
    return entry.fingerprint, _place(entry)


def _print_and_place_of(found: Found) -> Hashable:
    return found.finding.fingerprint, _place_of(found)


def _counts(finding: Finding) -> bool:
    """Whether a baseline can hold it: what an ignore hides needs no baseline."""
    ignored = finding.suppressed is not None and finding.suppressed_by != "baseline"
    return not ignored and can_be_suppressed(finding.rule) and bool(finding.fingerprint)


def _marked(finding: Finding, entry: Entry | None, baseline: Baseline) -> Finding:
    if finding.suppressed is not None or not _counts(finding):
        return finding
    if entry is None:
        return msgspec.structs.replace(finding, baseline_state="new")
    return msgspec.structs.replace(
        finding,
        suppressed=entry.reason or f"known from {baseline.name}",
        suppressed_by="baseline",
        baseline_state="unchanged",
    )


def _entry(found: Found, reason: str | None) -> Entry:
    finding = found.finding
    file, model = _place_of(found)
    place = finding.location
    return Entry(
        file=file,
        model=model,
        rule=finding.rule,
        op=finding.op,
        dtypes=", ".join(finding.dtypes),
        module=place.module if place else "",
        code=place.code if place else "",
        fingerprint=finding.fingerprint,
        reason=reason,
    )


def _place_of(found: Found) -> tuple[str, str]:
    return found.file, label_of(found.model) if found.model else ""


def _place(entry: Entry) -> tuple[str, str]:
    return entry.file, entry.model


def _bare(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, count=1, reason=None)


def _order(entry: Entry) -> tuple[str, ...]:
    what = (entry.file, entry.model, entry.rule, entry.op, entry.dtypes)
    return (*what, entry.module, entry.code, entry.fingerprint)
