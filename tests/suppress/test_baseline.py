from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.errors import DataError
from scanner.records import Capture, Finding, Report
from scanner.suppress.baseline import baseline_of, pruned, with_reasons
from scanner.suppress.baseline_file import parse_baseline, render_baseline
from scanner.suppress.interface import Baseline, Entry
from tests.suppress.samples import finding, hidden, ignore, model, report, row, stale, under

KINDS = [(rule, digit * 64) for rule in ("OPS101", "OPS201") for digit in "ab"]
"""What findings can be; OPS201 is not asked without a device."""


def of_kind(kind: int, severity: str = "error") -> Finding:
    rule, fingerprint = KINDS[kind]
    return finding(rule, 5, fingerprint=fingerprint, severity=severity)


severities = st.sampled_from(["error", "warning", "note"])
findings = st.lists(st.builds(of_kind, st.integers(0, len(KINDS) - 1), severities), max_size=12)


def scanned(found: list[Finding], **other: Any) -> Report:
    return report(model(*found, rows=(row(5),), **other))


def beside(found: Report, entries: tuple[Entry, ...]) -> Report:
    return under(found, baselines=(Baseline(name="base", entries=entries),))


def new_of(found: Report) -> Counter[tuple[str, str]]:
    every = [each for model in found.models for each in model.findings]
    return Counter((each.fingerprint, each.severity) for each in every if not each.suppressed)


@given(findings, findings)
def test_as_many_are_new_as_the_baseline_lacks(before: list[Finding], now: list[Finding]) -> None:
    found = beside(scanned(now), baseline_of(scanned(before)))
    prints = [Counter(each.fingerprint for each in some) for some in (now, before)]
    new = Counter({print_: number for (print_, _), number in new_of(found).items()})
    assert sum(new_of(found).values()) == sum((prints[0] - prints[1]).values())
    assert set(new) == set(prints[0] - prints[1])


@given(findings, findings, st.randoms())
def test_the_order_does_not_matter(before: list[Finding], now: list[Finding], random: Any) -> None:
    entries = list(baseline_of(scanned(before)))
    expected = beside(scanned(now), tuple(entries))
    random.shuffle(now)
    random.shuffle(entries)
    found = beside(scanned(now), tuple(entries))
    assert new_of(found) == new_of(expected)
    assert (found.exit_code, found.summary) == (expected.exit_code, expected.summary)
    assert sorted(stale(found)) == sorted(stale(expected))


@given(findings, findings, findings)
def test_a_larger_baseline_hides_no_less(
    before: list[Finding], more: list[Finding], now: list[Finding]
) -> None:
    small = new_of(beside(scanned(now), baseline_of(scanned(before))))
    large = new_of(beside(scanned(now), baseline_of(scanned(before + more))))
    assert not large - small


@given(findings)
def test_what_was_written_matches_itself(now: list[Finding]) -> None:
    found = beside(scanned(now), baseline_of(scanned(now)))
    assert (not new_of(found), stale(found), found.exit_code) == (True, [], 0)


@given(findings, findings)
def test_pruning_twice_is_pruning_once(before: list[Finding], now: list[Finding]) -> None:
    once = pruned(baseline_of(scanned(before)), scanned(now))
    assert pruned(once, scanned(now)) == once
    assert new_of(beside(scanned(now), once)) == new_of(
        beside(scanned(now), baseline_of(scanned(before)))
    )
    assert "OPS805" not in stale(beside(scanned(now), once))


@given(findings, findings)
def test_pruning_everything_leaves_what_is_there(before: list[Finding], now: list[Finding]) -> None:
    kept = pruned(baseline_of(scanned(before)), scanned(now), everything=True)
    counts = Counter({each.fingerprint: 0 for each in kept})
    for each in kept:
        counts[each.fingerprint] += each.count
    both = [Counter(each.fingerprint for each in some) for some in (before, now)]
    assert counts == both[0] & both[1]


@given(findings)
def test_the_file_holds_the_multiset(before: list[Finding]) -> None:
    entries = baseline_of(scanned(before))
    text = render_baseline(entries)
    assert parse_baseline(text.encode(), "base") == entries
    assert render_baseline(entries[::-1]) == text
    lines = [line for line in text.splitlines() if '"rule"' in line]
    assert len(lines) == text.count('"rule"') == len(entries)


def test_one_more_of_a_kind_is_new_and_it_is_the_gravest() -> None:
    before = scanned([of_kind(0, "warning")])
    found = beside(scanned([of_kind(0, "error"), of_kind(0, "warning")]), baseline_of(before))
    states = [(each.severity, each.baseline_state) for each in found.models[0].findings]
    assert states == [("error", "new"), ("warning", "unchanged")]
    assert found.exit_code == 1


def test_another_kind_of_failure_is_new() -> None:
    before = scanned([of_kind(0)])
    wrong = finding("OPS201", 5, fingerprint="c" * 64)
    assert hidden(beside(scanned([wrong]), baseline_of(before))) == [("OPS201", None)]


def test_the_new_one_is_that_in_another_file() -> None:
    before = report(model(finding()))
    elsewhere = model(finding(), source="other.py", name="Other", entry="Other")
    found = beside(report(elsewhere, model(finding())), baseline_of(before))
    assert [each.suppressed for model in found.models for each in model.findings] == [
        None,
        "known from base",
    ]


def test_a_renamed_file_is_still_known() -> None:
    before = report(model(finding()))
    moved = report(model(finding(), source="moved.py", entry="Net"))
    assert beside(moved, baseline_of(before)).exit_code == 0


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (scanned([]), ["OPS805"]),
        (scanned([of_kind(0)]), []),
        (scanned([], capture=Capture(method="real", complete=False)), []),
        (scanned([], name="Other", entry="Other"), []),
    ],
    ids=["fixed", "there", "in part", "another model"],
)
def test_what_is_fixed_is_said_where_it_was_looked_for(now: Report, said: list[str]) -> None:
    entries = baseline_of(scanned([of_kind(0)]))
    assert stale(beside(now, entries)) == said
    assert len(pruned(entries, now)) == (0 if said else 1)


def test_findings_of_a_device_are_not_fixed_by_a_scan_without_one() -> None:
    entries = baseline_of(scanned([of_kind(2)]))
    assert stale(beside(scanned([]), entries)) == []


def test_several_reports_prune_only_what_none_of_them_shows() -> None:
    entries = baseline_of(scanned([of_kind(0), of_kind(1)]))
    there, gone = scanned([of_kind(0)]), scanned([])
    assert pruned(entries, there, gone) == pruned(entries, gone, there)
    assert [each.fingerprint for each in pruned(entries, gone, there)] == [KINDS[0][1]]


def test_the_number_left_is_said() -> None:
    entries = baseline_of(scanned([of_kind(0)] * 3))
    found = beside(scanned([of_kind(0)]), entries)
    assert found.suppression
    assert "1 of 3 are left" in found.suppression.findings[0].message


def test_ignored_findings_and_problems_are_not_written() -> None:
    problem = finding("OPS901", severity="note", op="", location=None)
    found = report(model(finding("OPS101"), finding("OPS102", 9), problem))
    assert [each.rule for each in baseline_of(under(found, ignore(rule="OPS102")))] == ["OPS101"]


def test_a_baseline_is_written_over_one_that_hides_all() -> None:
    found = scanned([of_kind(0), of_kind(1)])
    entries = baseline_of(found)
    assert baseline_of(beside(found, entries)) == entries


def test_reasons_are_kept_and_shown() -> None:
    entries = baseline_of(scanned([of_kind(0)]), "until the rewrite")
    assert hidden(beside(scanned([of_kind(0)]), entries)) == [("OPS101", "until the rewrite")]
    again = with_reasons(baseline_of(scanned([of_kind(0), of_kind(1)])), entries)
    assert [each.reason for each in again] == ["until the rewrite", None]


ENTRY = {"rule": "OPS101", "fingerprint": "a" * 64}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "is not a baseline"),
        (b"<<<<<<< HEAD", "is not a baseline"),
        (b"\xff", "is not a baseline"),
        (b"[]", "is not a baseline"),
        ({"schema": "opscan.baseline/2", "findings": []}, "opscan.baseline/2"),
        ({"schema": "opscan.report/1"}, "is a report, not a baseline"),
        ({"schema": "opscan.baseline/1"}, "damaged"),
        ([ENTRY | {"count": 0}], "count"),
        ([ENTRY | {"count": 10**9}], "count"),
        ([ENTRY | {"count": "2"}], "count"),
        ([ENTRY | {"fingerprint": "x"}], "fingerprint"),
        ([ENTRY | {"rule": "E501"}], "rule"),
        ([ENTRY | {"reason": " "}], "reason of finding 1 (OPS101) is empty"),
    ],
    ids=str,
)
def test_what_is_no_baseline_is_refused(document: Any, words: str) -> None:
    if isinstance(document, list):
        document = {"schema": "opscan.baseline/1", "findings": document}
    text = document if isinstance(document, bytes) else msgspec.json.encode(document)
    with pytest.raises(DataError) as raised:
        parse_baseline(text, "base.json")
    assert "base.json" in raised.value.message
    assert words in raised.value.message


def test_fields_of_later_versions_are_passed_over() -> None:
    document = {"schema": "opscan.baseline/1", "findings": [ENTRY | {"later": 1}], "more": {}}
    (entry,) = parse_baseline(msgspec.json.encode(document), "base.json")
    assert entry == Entry(rule="OPS101", fingerprint="a" * 64)
