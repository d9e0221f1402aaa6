"""The page in a browser: what it shows, how it answers, and that it stays silent and alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scanner.records import CallOrder, Report, Verdict
from tests.report.browser import Tab, absent, chromium
from tests.report.sample_report import (
    BOTH,
    assembled,
    clean_report,
    report,
    timed_report,
    whole_report,
)
from tests.report.test_html import HOSTILE, hostile, ordered, page_of, with_source

pytestmark = pytest.mark.browser
Open = Callable[..., Tab]
LIGHT = {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}
ROWS = "#op-table tbody tr:not(.more)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open the page of a report; afterwards it must have been silent and alone."""
    tabs: list[Tab] = []

    def open_it(sample: Report, **options: Any) -> Tab:
        file = tmp_path / f"{len(tabs)}.html"
        file.write_text(page_of(sample), encoding="utf-8")
        tabs.append(Tab(browser, file, **LIGHT | options))
        return tabs[-1]

    yield open_it
    for tab in tabs:
        tab.close()


def ops(tab: Tab) -> list[str]:
    return tab.texts(f"{ROWS} th")


def deep(rows: int = 250) -> Report:
    """A model of many configurations: `aten::op_0` … with as many calls as their number."""
    sample = clean_report()
    model, row = sample.models[0], sample.models[0].ops[0]
    many = tuple(
        msgspec.structs.replace(
            row, op=f"aten::op_{n}", calls=n + 1, phase="forward" if n % 2 else "backward"
        )
        for n in range(rows)
    )
    model = msgspec.structs.replace(model, ops=many)
    return ordered(msgspec.structs.replace(sample, models=(model,)))


def test_the_summary_and_the_findings_are_there_without_javascript(opened: Open) -> None:
    tab = opened(with_source(report(*BOTH)), java_script_enabled=False)
    assert tab.text("h1") == "What an Apple GPU will do with 3 models"
    assert tab.texts(".verdict") == ["Does not run"] * 2
    assert "not supported on MPS by torch 2.9.1" in tab.text("#findings")
    assert "needs JavaScript" in tab.text("#ops")
    assert not tab.page.is_visible("#op-filter")
    assert not tab.page.is_visible("#theme")
    tab.page.click("text=As a list: ExactGP on torch 2.9.1")
    assert "CPU, as a fallback" in tab.text("#timeline details[open]")


def test_the_table_has_every_configuration_in_order(opened: Open) -> None:
    sample = report()
    tab = opened(sample)
    assert ops(tab) == [row.op for row in sample.models[0].ops]
    assert tab.text("#op-count") == "10 of 10 configurations, 1 to 10 shown"


def test_sorting_by_the_head_goes_down_up_and_back(opened: Open) -> None:
    tab = opened(report())
    head = tab.page.locator('th[data-column="calls"]')
    seen = []
    for _ in range(3):
        head.locator("button").click()
        seen.append((head.get_attribute("aria-sort"), tab.texts(f"{ROWS} td.number")[:3]))
    assert seen == [
        ("descending", ["24", "24", "2"]),
        ("ascending", ["1", "1", "1"]),
        (None, ["24", "24", "1"]),
    ]
    tab.page.click('th[data-column="op"] button')
    assert ops(tab) == sorted(ops(tab))
    assert tab.page.locator("[aria-sort]").count() == 1


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("status", "fallback", ["aten::linalg_svd"]),
        ("phase", "optimizer", ["aten::_foreach_add_.List"]),
        ("evidence", "none", ["torchvision::nms"]),
        ("status", "crash", []),
    ],
)
def test_filters(opened: Open, field: str, value: str, expected: list[str]) -> None:
    tab = opened(report())
    if tab.page.locator(f'#op-filter [name={field}] option[value="{value}"]').count() == 0:
        assert expected == []
        return
    tab.page.select_option(f"#op-filter [name={field}]", value)
    assert ops(tab) == expected


def test_a_target_is_chosen(opened: Open) -> None:
    tab = opened(report(*BOTH))
    tab.page.select_option("#op-filter [name=status]", "fallback")
    assert ops(tab) == ["aten::linalg_svd"]
    tab.page.select_option("#op-filter [name=view]", label="torch 2.14.0")
    assert ops(tab) == []
    tab.page.click("#op-reset")
    assert len(ops(tab)) == 10


@pytest.mark.parametrize("words", ["LINALG_SVD", "bf16", "gpytorch/kernels", "scaled_dot_product"])
def test_search_looks_at_names_shapes_and_places(opened: Open, words: str) -> None:
    tab = opened(report())
    tab.page.fill("#op-filter [name=text]", words)
    assert ops(tab) == ["aten::linalg_svd"]
    assert tab.text("#op-count") == "1 of 10 configurations, 1 to 1 shown"


def test_a_row_unfolds_by_keyboard_and_keeps_the_focus(opened: Open) -> None:
    tab = opened(report(*BOTH))
    button = tab.page.locator(f"{ROWS} button", has_text="aten::linalg_svd")
    button.focus()
    tab.page.keyboard.press("Enter")
    assert tab.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    more = tab.text("tr.more")
    assert "registered to run on the CPU (database), fixed in 2.14.0" in more
    assert "nets/gp.py:43" in more
    assert "gpytorch/kernels.py:210" in more
    tab.page.keyboard.press("Enter")
    assert tab.page.locator("tr.more").count() == 0
    assert tab.run("document.activeElement.getAttribute('aria-expanded')") == "false"


def test_pages_of_a_long_table(opened: Open) -> None:
    tab = opened(deep())
    assert len(ops(tab)) == 100
    assert tab.page.is_disabled("[data-page=previous]")
    tab.page.click("[data-page=last]")
    assert ops(tab)[-1] == "aten::op_249"
    assert (len(ops(tab)), tab.text("#op-page")) == (50, "page 3 of 3")
    assert tab.page.is_disabled("[data-page=next]")
    tab.page.click("[data-page=previous]")
    assert ops(tab)[0] == "aten::op_100"
    tab.page.click('th[data-column="calls"] button')
    assert ops(tab)[0] == "aten::op_249"


def test_paper_has_more_rows_and_no_dark(opened: Open) -> None:
    tab = opened(deep(), color_scheme="dark")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert len(ops(tab)) == 250
    tab.page.emulate_media(media="print")
    assert tab.run("getComputedStyle(document.documentElement).colorScheme") == "light"
    tab.page.emulate_media(media="screen")
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert len(ops(tab)) == 100
    assert tab.run("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_the_theme_follows_the_system_until_it_is_chosen(opened: Open) -> None:
    scheme = "getComputedStyle(document.documentElement).colorScheme"
    tab = opened(clean_report(), color_scheme="dark")
    assert (tab.text("#theme"), tab.run(scheme)) == ("Theme: system", "dark")
    tab.page.click("#theme")
    assert (tab.text("#theme"), tab.run(scheme)) == ("Theme: light", "light")
    tab.page.reload()
    assert (tab.text("#theme"), tab.run(scheme)) == ("Theme: light", "light")
    tab.page.click("#theme")
    assert (tab.text("#theme"), tab.run(scheme)) == ("Theme: dark", "dark")
    tab.requests.pop()  # the same file, read again


def test_findings_are_searched_and_chosen_by_severity(opened: Open) -> None:
    tab = opened(report(*BOTH))
    shown = ".finding:visible"
    everything = tab.page.locator(shown).count()
    tab.page.uncheck("#finding-filter [name=note]")
    tab.page.uncheck("#finding-filter [name=warning]")
    assert set(tab.texts(f"{shown} .severity")) == {"✗ error"}
    tab.page.fill("#finding-filter [name=text]", "float64")
    assert tab.texts(f"{shown} .rule") == ["OPS104 float64"]
    assert tab.text("#finding-count") == f"1 of {tab.page.locator('.finding').count()} findings"
    assert everything > 1


def test_a_finding_leads_to_its_op_in_the_table(opened: Open) -> None:
    tab = opened(report())
    tab.page.click('.finding button[data-op="aten::linalg_svd"]')
    assert ops(tab) == ["aten::linalg_svd"]
    assert tab.run("document.activeElement.name") == "text"


def alternating() -> Report:
    """mm on the GPU and a fallback in turn, 24 calls each, in order."""
    sample = clean_report()
    model = sample.models[0]
    target = sample.targets[0].id
    slow = Verdict(target=target, status="fallback", evidence="database", reason="on the CPU")
    rows = (
        msgspec.structs.replace(model.ops[0], calls=24),
        msgspec.structs.replace(model.ops[1], calls=24, verdicts=(slow,)),
    )
    order = CallOrder(targets=(target,), rows=(0, 1) * 24)
    return assembled(sample.targets, msgspec.structs.replace(model, ops=rows, order=(order,)))


def now(tab: Tab) -> str:
    return str(tab.page.get_attribute("#walk-slider", "aria-valuetext"))


def test_the_step_is_walked_by_keyboard(opened: Open) -> None:
    tab = opened(alternating())
    assert "48 calls in order of execution, 24 fallbacks to the CPU, 47 switches" in tab.text(
        "#walk-note"
    )
    tab.page.focus("#walk-slider")
    assert now(tab) == "call 2 of 48: aten::t, forward, fallback, CPU, as a fallback"
    for key, call in (("ArrowRight", 3), ("End", 48), ("Home", 1), ("n", 2), ("n", 4), ("p", 2)):
        tab.page.keyboard.press(key)
        assert tab.page.get_attribute("#walk-slider", "aria-valuenow") == str(call), key
    tab.page.keyboard.press("+")
    assert tab.run("walk.to - walk.from") == 24
    tab.page.keyboard.press("0")
    assert tab.run("walk.to - walk.from") == 48


_COLOR = """getComputedStyle(document.documentElement).getPropertyValue("--%s").trim()
  .match(/[0-9a-f]{2}/g).map(part => parseInt(part, 16))"""


def test_the_step_is_drawn_in_lanes(opened: Open) -> None:
    tab = opened(alternating())
    column = """call => {
      const [x, height] = [(xOf(call) + 2) * devicePixelRatio, canvas.height];
      const {data} = canvas.getContext("2d").getImageData(x, 0, 1, height);
      const at = lane => (laneTop(lane) + 3) * devicePixelRatio * 4;
      return [0, 1].map(lane => [...data.slice(at(lane), at(lane) + 3)]);
    }"""
    colors = {name: tab.run(_COLOR % name) for name in ("soft", "native", "fallback")}
    assert colors["native"] == [26, 127, 55]
    drawn = [colors["native"], colors["soft"], colors["soft"], colors["fallback"]]
    assert tab.page.evaluate(column, 10) == drawn[:2]
    assert opened(alternating()).page.evaluate(column, 11) == drawn[2:]


def test_a_click_on_the_step_leads_to_the_row(opened: Open) -> None:
    tab = opened(alternating())
    tab.page.locator("#walk-canvas").scroll_into_view_if_needed()
    box = tab.page.locator("#walk-canvas").bounding_box()
    tab.page.mouse.click(box["x"] + tab.run("xOf(30)") + 3, box["y"] + 40)
    assert now(tab).startswith("call 31 of 48: aten::mm")
    tab.page.click("#walk-call button")
    assert tab.run("document.activeElement.innerText") == "aten::mm"
    assert tab.run("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_a_report_without_order_says_so(opened: Open) -> None:
    assert "This report has no order of execution" in opened(report()).text("#walk-note")


@pytest.mark.parametrize("sample", [report(*BOTH), timed_report(), whole_report()])
def test_hostile_names_are_only_text(opened: Open, sample: Report) -> None:
    tab = opened(hostile(with_source(sample) if sample.models[0].findings else sample))
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("script").count() == 2
    tab.page.click(f"{ROWS} button")
    tab.page.focus("#walk-slider")
    tab.page.keyboard.press("ArrowRight")
    visible = HOSTILE.split("`")[0]
    assert visible in now(tab)
    assert visible in tab.text("tr.more")


@pytest.mark.parametrize("sample", [report(*BOTH), timed_report(), whole_report(), deep()])
@pytest.mark.parametrize("width", [320, 768])
def test_narrow_pages_do_not_scroll_sideways(opened: Open, sample: Report, width: int) -> None:
    tab = opened(sample, viewport={"width": width, "height": 800})
    assert tab.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "sample", [ordered(with_source(report(*BOTH))), timed_report(), whole_report()]
)
def test_axe_finds_nothing(opened: Open, sample: Report, width: int, scheme: str) -> None:
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ModuleNotFoundError:
        absent("axe is not installed")
    tab = opened(sample, color_scheme=scheme, viewport={"width": width, "height": 800})
    tab.page.click(f"{ROWS} button")
    tab.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = Axe().run(tab.page)
    assert [each["id"] for each in found.response["violations"]] == []


def test_tab_reaches_the_content_first(opened: Open) -> None:
    tab = opened(report())
    tab.page.keyboard.press("Tab")
    assert tab.run("document.activeElement.innerText") == "Skip to the summary"
    outline = tab.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
