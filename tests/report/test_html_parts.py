"""Pieces of the page, against truth written by hand."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.records import CallOrder, Capture, Evidence, ModelReport, Report, Status, Verdict
from scanner.report import Style, render
from scanner.report.html.charts import LineChart, Series, bar, line_chart, ticks
from scanner.report.html.details import number
from scanner.report.html.embed import script_json
from scanner.report.html.glance import Outcome, glances
from scanner.report.html.lanes import (
    LANE_OF,
    Lane,
    Run,
    lane_of,
    runs,
    switches,
    walk,
    without_host,
)
from scanner.report.html.plots import figures
from scanner.report.html.safe import safe, safe_link
from scanner.report.html.strip import strip
from scanner.report.html.views import View, seen, views_of
from scanner.report.json_ import parse
from scanner.statuses import SEVERITY_ORDER
from tests.report.html_page import parsed
from tests.report.sample_report import BOTH, assembled, clean_report, report, timed_report

LETTERS: dict[str, Lane] = {"g": "gpu", "c": "cpu", "h": "host", "x": "stops", "?": "unknown"}


def lanes(letters: str) -> list[Lane]:
    return [LETTERS[letter] for letter in letters]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("", 0),
        ("ggg", 0),
        ("gcg", 2),
        ("gccg", 2),
        ("cgcg", 3),
        ("ghhg", 0),
        ("ghcxg", 2),
        ("g?g", 0),
        ("hhx?", 0),
    ],
)
def test_only_fallbacks_switch(letters: str, expected: int) -> None:
    assert switches(lanes(letters)) == expected


def test_runs_are_the_longest_stretches() -> None:
    assert list(runs([5, 6, 5, 7], lanes("ggch"))) == [
        Run("gpu", 0, (5, 6)),
        Run("cpu", 2, (5,)),
        Run("host", 3, (7,)),
    ]


@pytest.mark.parametrize(
    ("letters", "expected"), [("", ""), ("hh", "hh"), ("hghhch", "ggggcc"), ("xh?h", "xx??")]
)
def test_what_the_code_keeps_on_the_cpu_interrupts_nothing(letters: str, expected: str) -> None:
    assert without_host(lanes(letters)) == lanes(expected)


@given(st.text("gchx?", max_size=30))
def test_runs_cover_every_call_once(letters: str) -> None:
    found = list(runs(range(len(letters)), lanes(letters)))
    assert [call for run in found for call in run.calls] == list(range(len(letters)))
    assert all(one.lane != other.lane for one, other in pairwise(found))


def test_every_status_has_a_lane() -> None:
    assert set(LANE_OF) == set(SEVERITY_ORDER)


def test_what_a_device_skips_was_not_run() -> None:
    verdict = Verdict(target="t", status="skipped", evidence=None, reason="")
    assert lane_of(verdict, View("t", "t")) == "host"
    assert lane_of(verdict, View("t", "t", is_device=True)) == "unknown"


def test_walk_takes_the_order_of_the_target() -> None:
    sample = clean_report()
    target = sample.targets[0].id
    model = msgspec.structs.replace(
        sample.models[0],
        ops=tuple(msgspec.structs.replace(row, calls=2) for row in sample.models[0].ops),
        order=(
            CallOrder(targets=("torch==2.0.0",), rows=(0, 0, 1, 1)),
            CallOrder(targets=(target,), rows=(1, 0, 1, 0)),
        ),
    )
    step = walk(model, View(target, target))
    assert (step.calls, step.is_ordered) == ((1, 0, 1, 0), True)
    bare = walk(msgspec.structs.replace(model, order=()), View(target, target))
    assert (bare.calls, bare.is_ordered) == ((0, 0, 1, 1), False)


def outcome(*statuses: Status, complete: bool = True, evidence: Evidence = "database") -> Outcome:
    """The first target's view of a model whose rows have these statuses."""
    sample = clean_report()
    row = sample.models[0].ops[0]
    rows = tuple(
        msgspec.structs.replace(
            row,
            op=f"aten::op{place}",
            verdicts=(
                msgspec.structs.replace(
                    row.verdicts[0],
                    status=status,
                    evidence=None if status in {"skipped", "unknown"} else evidence,
                ),
            ),
        )
        for place, status in enumerate(statuses)
    )
    capture = Capture(method="meta", complete=complete)
    model = msgspec.structs.replace(sample.models[0], ops=rows, capture=capture)
    [found] = glances(assembled(sample.targets, model))
    return found.outcomes[0]


@pytest.mark.parametrize(
    ("statuses", "tone", "title"),
    [
        (("native", "composite", "skipped"), "good", "Should run on the GPU"),
        (("native", "slow"), "warn", "Should run, in part slowly"),
        (("native", "unknown"), "unknown", "Not fully known"),
        (("unknown", "slow"), "warn", "Should run, in part slowly; not fully known"),
        (("fallback", "unknown"), "warn", "Should run, in part on the CPU; not fully known"),
        (("nan", "fallback"), "bad", "Runs, with NaN or infinity"),
        (("wrong", "nan"), "bad", "Runs, with wrong results"),
        (("unsupported", "wrong"), "bad", "Does not run"),
        (("crash", "unsupported"), "bad", "Crashes"),
    ],
)
def test_the_sentence_tells_the_worst(statuses: tuple[Status, ...], tone: str, title: str) -> None:
    found = outcome(*statuses)
    assert (found.tone, found.title) == (tone, title)


def test_only_what_was_measured_is_said_to_run() -> None:
    assert outcome("native", "skipped", evidence="measured").title == "Runs on the GPU"
    assert outcome("fallback", evidence="measured").title == "Runs, in part on the CPU"
    assert outcome("native", evidence="simulated").title == "Should run on the GPU"


def test_what_was_not_seen_is_no_pass() -> None:
    found = outcome("native", complete=False)
    assert (found.tone, found.title) == ("unknown", "Should run, as far as it was seen")
    found = outcome("fallback", complete=False)
    assert (found.tone, found.title) == ("warn", "Should run, in part on the CPU; not fully known")


def test_details_name_ops_by_status_worst_first() -> None:
    found = outcome("fallback", *["unsupported"] * 6, "native")  # type: ignore[arg-type]
    assert found.details == (
        "6 ops unsupported: aten::op1, aten::op2, aten::op3, aten::op4 and 2 more",
        "1 op fallback: aten::op0",
    )


def test_a_device_that_is_no_target_is_a_view_of_its_own() -> None:
    sample = timed_report()
    target, device = views_of(sample)
    assert target.id == sample.targets[0].id
    assert (device.label, device.is_device) == ("cuda (NVIDIA H200, torch 2.13.0, Linux)", True)
    statuses = {
        row.op: verdict.status for row in sample.models[0].ops if (verdict := seen(row, device))
    }
    assert statuses["aten::linalg_svd"] == "crash"
    assert "aten::t" not in statuses  # not run


def test_two_targets_are_two_views() -> None:
    assert [view.label for view in views_of(report(*BOTH))] == ["torch 2.9.1", "torch 2.14.0"]


def test_a_strip_shows_the_worst_of_each_slot() -> None:
    statuses: list[Status] = ["native"] * 4000
    called: list[Lane] = ["gpu"] * 4000
    statuses[1234], called[1234] = "fallback", "cpu"
    drawn = parsed(str(strip(statuses, called, "told")))
    rects = [
        (
            each.attributes["class"],
            each.attributes["x"],
            each.attributes["width"],
            each.attributes["y"],
        )
        for each in drawn.every("rect")
    ]
    assert rects == [
        ("s-native", "0", "123", "0"),
        ("s-fallback", "123", "1", "12"),
        ("s-native", "124", "276", "0"),
    ]
    assert strip([], [], "told") == ""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 5, 10]),
        (0, 1, [0, 0.5, 1]),
        (1.2, 1.6, [1.2, 1.3, 1.4, 1.5, 1.6]),
        (0, 3e-5, [0, 1e-5, 2e-5, 3e-5]),
    ],
)
def test_ticks(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


amounts = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-12)


@given(amounts, amounts)
def test_ticks_hold_every_value_between(one: float, other: float) -> None:
    low, high = sorted((one, other))
    marks = ticks(low, high)
    slack = 1e-6 * (marks[-1] - marks[0])
    assert marks[0] <= low + slack
    assert marks[-1] >= high - slack
    assert 2 <= len(marks) <= 8


def chart(*ys: float | None) -> LineChart:
    xs = tuple(str(place) for place in range(len(ys)))
    line = Series(name="n", ys=ys)
    return LineChart(title="t", xs=xs, x_title="x", series=(line,), y_text=str)


def test_a_value_that_is_missing_is_a_gap() -> None:
    drawn = parsed(str(line_chart(chart(0.0, 1.0, None, 1.0))))
    (path,) = (each for each in drawn.every("path") if each.attributes.get("class") == "line")
    assert path.attributes["d"] == "M131.5 196.0 L250.5 10.0 M488.5 10.0"
    assert len(drawn.every("circle")) == 3
    assert line_chart(chart(None)) == ""


def test_a_bar_never_leaves_its_box() -> None:
    assert 'width="100.00"' in bar(7.0, "fill")
    assert 'width="0.00"' in bar(-1.0, "fill")
    assert 'width="100.00"' in bar(float("nan"), "fill")


def estimated() -> ModelReport:
    sample = clean_report()
    rows = tuple(
        msgspec.structs.replace(row, estimate={"device_s": seconds, "basis": "flops"})
        for row, seconds in zip(sample.models[0].ops, (1e-3, 2e-3), strict=True)
    )
    memory = {"basis": "from lifetimes", "peak_bytes": 3 << 20, "parameters_bytes": 1 << 20}
    return msgspec.structs.replace(sample.models[0], ops=rows, memory=memory)


def test_estimates_are_called_estimates_and_measurements_measured() -> None:
    found = {figure.title: figure for figure in figures(estimated())}
    longest = found["What a step would spend its time on"]
    assert longest.basis == "estimated"
    assert [(row[0], row[2]) for row in longest.rows] == [
        ("aten::t · forward", "2.00 ms"),
        ("aten::mm · forward", "1.00 ms"),
    ]
    assert found["Memory"].basis == "estimated"
    assert [(row[0], row[2]) for row in found["Memory"].rows] == [
        ("peak", "3.00 MiB"),
        ("parameters", "1.00 MiB"),
    ]
    assert {figure.basis for figure in figures(timed_report().models[0])} == {"measured"}
    assert list(figures(clean_report().models[0])) == []


def test_the_order_of_free_keys_does_not_matter() -> None:
    sample = assembled(clean_report().targets, estimated())
    saved = parse(render(sample, "json", Style()).encode(), "report.json")
    assert render(saved, "html", Style()) == render(sample, "html", Style())


def test_what_a_damaged_report_has_for_a_number_is_none() -> None:
    assert number({"a": {"b": 1}}, "a", "b") == 1.0
    for broken in (
        None,
        {},
        {"a": 1},
        {"a": {"b": "1"}},
        {"a": {"b": True}},
        {"a": {"b": float("inf")}},
        {"a": {"b": float("nan")}},
    ):
        assert number(broken, "a", "b") is None


def test_free_parts_of_a_damaged_report_are_left_out() -> None:
    sample = timed_report()
    detail = {"share": 3, "timing": "x", "reason": ["y"]}
    rows = tuple(
        msgspec.structs.replace(
            row,
            measurement=row.measurement and msgspec.structs.replace(row.measurement, detail=detail),
        )
        for row in sample.models[0].ops
    )
    model = msgspec.structs.replace(
        sample.models[0],
        ops=rows,
        time={"autocast": 3, "device_s": "x", "not_timed": None},
        memory={"peak_bytes": None, "basis": 7},
    )
    assert [figure.rows for figure in figures(model) if figure.basis == "estimated"] == [(), ()]
    parsed(render(assembled(sample.targets, model), "html", Style()))


@given(st.text())
def test_safe_text_has_nothing_that_steers(text: str) -> None:
    found = safe(text)
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", found
    )
    assert safe(found) == found
    found.encode()


@given(st.text())
def test_json_never_ends_its_script(text: str) -> None:
    found = str(script_json([text]))
    assert "<" not in found
    assert found.isascii()
    assert msgspec.json.decode(found.encode()) == [text]


@given(st.text())
def test_a_link_is_a_web_address_or_none(text: str) -> None:
    assert (safe_link(text) or "http://x").startswith(("http://", "https://"))


def colors_of(sheet: str) -> dict[str, str]:
    text = files("scanner.report").joinpath(f"templates/page/{sheet}").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))


THEMES = {"light": colors_of("page.css"), "dark": colors_of("dark.css")}


def luminance(color: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable_in_both_themes(theme: str) -> None:
    colors = THEMES[theme]
    pairs = [
        (front, back) for front in ("ink", "dim", "link") for back in ("paper", "card", "soft")
    ]
    pairs += [(tone, f"{tone}-bg") for tone in ("good", "warn", "bad", "unsure")]
    pairs += [(tone, "card") for tone in ("good", "warn", "bad", "unsure")]
    pairs += [("glyph", status) for status in SEVERITY_ORDER]
    poor = {pair: contrast(colors[pair[0]], colors[pair[1]]) for pair in pairs}
    assert {pair: value for pair, value in poor.items() if value < 4.5} == {}
    assert all(contrast(colors[status], colors["soft"]) >= 3 for status in SEVERITY_ORDER)


def test_both_themes_name_the_same_colors() -> None:
    assert THEMES["light"].keys() == THEMES["dark"].keys()


def test_a_report_of_nothing() -> None:
    assert glances(Report(summary=clean_report().summary, exit_code=0)) == []
