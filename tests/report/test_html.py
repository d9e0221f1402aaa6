from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from scanner.records import CallOrder, Finding, Fix, Location, Report, SourceScan, Suppression
from scanner.report import Style, render
from scanner.report.html.page import STATUS_SIGNS
from scanner.statuses import SEVERITY_ORDER
from tests.report.html_page import by_id, embedded_data, parsed, shown_text
from tests.report.sample_report import (
    BOTH,
    clean_report,
    report,
    simulated_report,
    timed_report,
    whole_report,
)

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"`&\u2028{{7*7}}<!--"
    "\u202eevil\x00\x1b[31m"
)
SAMPLES = {
    "both": report(*BOTH),
    "clean": clean_report(),
    "timed": timed_report(),
    "whole": whole_report(),
    "simulated": simulated_report(),
}
each_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def page_of(sample: Report) -> str:
    return render(sample, "html", Style())


def with_source(sample: Report) -> Report:
    """With one finding suppressed, and one of a source file."""
    model = sample.models[0]
    first, *others = model.findings
    known = msgspec.structs.replace(first, suppressed="the upgrade is planned")
    model = msgspec.structs.replace(model, findings=(known, *others))
    finding = Finding(
        rule="OPS601",
        severity="warning",
        target="",
        op="",
        message="asks for a device that no Mac has",
        remedy="Use .to(device).",
        location=Location(file="train.py", line=9, code="model.cuda()", column=7),
        fix=Fix(description="Replace .cuda() by .to(device)", safe=False),
    )
    return msgspec.structs.replace(
        sample,
        models=(model, *sample.models[1:]),
        source=SourceScan(files=12, skipped=3, findings=(finding,)),
    )


def ordered(sample: Report, rows: tuple[int, ...] | None = None) -> Report:
    """With an order of execution: every row's calls, one of each row in turn."""
    model = sample.models[0]
    most = max(row.calls for row in model.ops)
    turns = [row for n in range(most) for row, each in enumerate(model.ops) if n < each.calls]
    order = CallOrder(
        targets=tuple(target.id for target in sample.targets), rows=rows or tuple(turns)
    )
    model = msgspec.structs.replace(model, order=(order,))
    return msgspec.structs.replace(sample, models=(model, *sample.models[1:]))


@each_sample
def test_the_markup_is_well_formed_and_its_references_lead_somewhere(sample: Report) -> None:
    root = parsed(page_of(sample))
    named = by_id(root)
    for element in root.every():
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert element.attributes.get(name) in {None, *named}
        target = element.attributes.get("href") or ""
        assert not target.startswith("#") or target[1:] in named
    levels = [
        int(element.tag[1]) for element in root.every() if element.tag in {"h1", "h2", "h3", "h4"}
    ]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("landmark", ["header", "nav", "main"])
def test_landmarks(landmark: str) -> None:
    assert parsed(page_of(clean_report())).every(landmark)


def test_golden(snapshot: SnapshotAssertion) -> None:
    assert shown_text(parsed(page_of(ordered(with_source(report(*BOTH)))))) == snapshot


@pytest.mark.parametrize("name", ["timed", "whole", "simulated"])
def test_golden_of_figures(name: str, snapshot: SnapshotAssertion) -> None:
    assert shown_text(parsed(page_of(SAMPLES[name]))) == snapshot


@each_sample
def test_nothing_is_loaded_and_only_our_script_may_run(sample: Report) -> None:
    page = page_of(sample)
    root = parsed(page)
    assert not root.every("link")
    assert not [each for each in root.every() if {"src", "style"} & each.attributes.keys()]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", page)
    (policy,) = (
        each.attributes["content"]
        for each in root.every("meta")
        if each.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    script = next(each for each in root.every("script") if "type" not in each.attributes)
    for part in (script, *root.every("style")):
        digest = base64.b64encode(hashlib.sha256(part.text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none'; ")
    assert "unsafe" not in str(policy)


def test_the_data_hold_every_row_once() -> None:
    sample = ordered(report(*BOTH))
    data = embedded_data(parsed(page_of(sample)))
    (model,) = data["models"]
    ops = sample.models[0].ops
    assert [data["texts"][row[0]] for row in model["rows"]] == [row.op for row in ops]
    assert [row[3] for row in model["rows"]] == [row.calls for row in ops]
    seen = [
        {
            data["views"][view][0]: data["statuses"][data["verdicts"][verdict][0]]
            for view, verdict in data["seen"][row[6]]
        }
        for row in model["rows"]
    ]
    names = {target.id: f"torch {target.version}" for target in sample.targets}
    assert seen == [{names[each.target]: each.status for each in row.verdicts} for row in ops]
    orders = [model["orders"][number] for number in model["orderOf"]]
    assert orders == [list(sample.models[0].order[0].rows)] * 2
    assert len(set(data["texts"])) == len(data["texts"])


def test_a_report_without_order_says_so_and_gets_none() -> None:
    root = parsed(page_of(report()))
    assert embedded_data(root)["models"][0]["orderOf"] == [-1]
    assert "not in order of execution: this report does not have it" in shown_text(root)
    assert "switches cannot be counted" in shown_text(root)


@pytest.mark.parametrize("rows", [(0, 99, -1), (0,)])
def test_an_order_that_does_not_fit_is_none(rows: tuple[int, ...]) -> None:
    root = parsed(page_of(ordered(report(), rows)))
    assert embedded_data(root)["models"][0]["orderOf"] == [-1]


def changed(value: Any, change: Callable[[str], str], name: str = "") -> Any:
    """Plain data with every free text changed; words of closed sets stay."""
    closed = {"status", "evidence", "severity", "phase", "kind", "schema", "framework"}
    if isinstance(value, dict):
        return {
            key if key in _FIELDS else change(key): changed(each, change, key)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [changed(each, change, name) for each in value]
    return change(value) if isinstance(value, str) and name not in closed else value


_FIELDS = {
    *("share", "timing", "device", "cpu", "median_s", "device_s", "cpu_s", "first_s", "warning"),
    *("reason", "inputs", "outputs", "attributes", "dtype", "shape", "layout", "notes"),
    *("first_calls_s", "not_timed", "timed", "configurations", "calls", "autocast", "basis"),
    *(status for status in SEVERITY_ORDER),
    *("forward", "loss", "backward", "optimizer", "by_config", "by_call"),
    *(name for kind in vars(__import__("scanner.records", fromlist=["_"])).values()
      if hasattr(kind, "__struct_fields__") for name in kind.__struct_fields__),
}  # fmt: skip


def hostile(sample: Report) -> Report:
    plain = changed(msgspec.to_builtins(sample), lambda text: text + HOSTILE)
    return msgspec.convert(plain, Report)


@pytest.mark.parametrize(
    "sample",
    [ordered(with_source(each)) if each.models[0].findings else each for each in SAMPLES.values()],
    ids=SAMPLES,
)
def test_hostile_text_stays_text(sample: Report) -> None:
    good, page = parsed(page_of(sample)), page_of(hostile(sample))
    root = parsed(page)
    assert len(root.every("script")) == 2
    tags = {element.tag for element in good.every()}
    assert {element.tag for element in root.every()} <= tags | {"p", "bdi", "span", "button"}
    names = {name for element in root.every() for name in element.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e]", page)
    assert "{{7*7}}" in shown_text(root)
    assert "<img src=x" in shown_text(root)
    data = embedded_data(root)
    assert any("</script>" in text for text in data["texts"])


@settings(max_examples=25)
@given(st.text(min_size=1))
def test_any_text_makes_a_well_formed_page(text: str) -> None:
    plain = changed(msgspec.to_builtins(with_source(report())), lambda _: text)
    root = parsed(page_of(msgspec.convert(plain, Report)))
    by_id(root)
    assert embedded_data(root)["models"]


@pytest.mark.parametrize(
    ("link", "is_link"),
    [
        ("https://github.com/pytorch/pytorch/issues/1", True),
        ("javascript:alert(1)", False),
        ("data:text/html,<script>alert(1)</script>", False),
        ("JaVaScRiPt:alert(1)", False),
        ("https:alert(1)", False),
        ("//host/path", False),
        ("http://[", False),
    ],
)
def test_only_web_addresses_are_links(link: str, is_link: bool) -> None:
    sample = report()
    model = sample.models[0]
    finding = msgspec.structs.replace(model.findings[0], links=(link,))
    verdict = msgspec.structs.replace(model.ops[0].verdicts[0], links=(link,))
    row = msgspec.structs.replace(model.ops[0], verdicts=(verdict,))
    model = msgspec.structs.replace(model, findings=(finding,), ops=(row, *model.ops[1:]))
    root = parsed(page_of(msgspec.structs.replace(sample, models=(model,))))
    assert link in shown_text(root)
    assert (link in {each.attributes["href"] for each in root.every("a")}) is is_link
    assert (link in embedded_data(root)["texts"]) is is_link


def test_findings_that_differ_in_place_and_target_only_are_one_entry() -> None:
    sample = report()
    model = sample.models[0]
    one = model.findings[0]
    places = [Location(file="a.py", line=line) for line in (3, 4, 3)]
    found = [
        msgspec.structs.replace(one, location=place, target=target, calls=calls)
        for place, target, calls in zip(places, ("t1", "t1", "t2"), (2, 5, 1), strict=True)
    ]
    model = msgspec.structs.replace(model, findings=tuple(found))
    root = parsed(page_of(msgspec.structs.replace(sample, models=(model,))))
    (entry,) = (each for each in root.every("article") if "data-severity" in each.attributes)
    spots = [re.sub(r"\s+", " ", each.text).strip() for each in entry.every("li")]
    assert spots == ["a.py:3 2 calls on t1, t2", "a.py:4 5 calls on t1"]
    assert "7 calls" in entry.every("h4")[0].text


def test_suppressed_findings_are_folded_with_their_reason() -> None:
    root = parsed(page_of(with_source(report())))
    (folded,) = (
        each for each in root.every("details") if each.attributes.get("class") == "suppressed"
    )
    assert "the upgrade is planned" in folded.text
    assert "open" not in folded.attributes


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("line", "Ignored by a comment: the reason"),
        ("settings", "Ignored in the settings: the reason"),
        ("baseline", "Known before: the reason"),
        (None, "Suppressed: the reason"),
    ],
)
def test_how_a_finding_was_accepted(by: Any, words: str) -> None:
    sample = report()
    model = sample.models[0]
    first, second, *others = model.findings
    first = msgspec.structs.replace(first, suppressed="the reason", suppressed_by=by)
    second = msgspec.structs.replace(second, baseline_state="new")
    model = msgspec.structs.replace(model, findings=(first, second, *others))
    root = parsed(page_of(msgspec.structs.replace(sample, models=(model,))))
    assert words in shown_text(root)
    marked = [each for each in root.every("span") if each.attributes.get("class") == "new"]
    assert [each.text for each in marked] == ["new"]
    assert ("1 known, 1 new" if by == "baseline" else "1 ignored, 1 new") in shown_text(root)


def test_stale_ignores_have_a_section_of_their_own() -> None:
    stale = Finding(
        rule="OPS801", severity="warning", target="", op="", message="m", remedy="r", location=None
    )
    sample = msgspec.structs.replace(
        with_source(report()), suppression=Suppression(findings=(stale,))
    )
    root = parsed(page_of(sample))
    titles = [each.text.strip() for each in root.every("h3")]
    assert titles[titles.index("Source files") + 1] == "Ignores and baselines"


def test_a_source_finding_has_its_place_and_its_fix() -> None:
    shown = shown_text(parsed(page_of(with_source(report()))))
    assert "train.py:9:7 model.cuda()" in shown
    assert "opscan fix: Replace .cuda() by .to(device) (needs --unsafe)" in shown
    assert "Source rules read 12 files; 3 never mention a framework." in shown


def test_a_page_about_source_files_only() -> None:
    empty = msgspec.structs.replace(with_source(report()), models=(), targets=())
    root = parsed(page_of(empty))
    assert "What would stop an Apple GPU in source files" in shown_text(root)
    assert "ops" not in by_id(root)


def test_every_status_has_a_sign() -> None:
    assert set(STATUS_SIGNS) == set(SEVERITY_ORDER)


def test_the_frame_of_a_page_is_small() -> None:
    assert len(page_of(clean_report()).encode()) < 80_000
