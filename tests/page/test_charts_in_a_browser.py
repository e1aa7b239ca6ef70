"""The interactive charts in a real browser: every panel is drawn, choices switch, filters hide, names stay names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import Open, report_of
from charted import LOADS, awkward_run
from playwright.sync_api import Page
from runs import load_run, simulated_run

MODES = {
    "static": {"batch_size": 8},
    "continuous max_running=2": {"max_running": 2, "token_budget": 512},
    "continuous max_running=8": {"max_running": 8, "token_budget": 512},
}
DRAWN = """() => [...document.querySelectorAll(".chart")].map((figure) => [
  figure.id.replace(/-0$/, ""),
  [...figure.querySelectorAll(".panel")].filter((panel) => panel.offsetParent).map((panel) => {
    const plot = panel.querySelector(".js-plotly-plot");
    return plot.querySelectorAll(".main-svg").length ? plot.data.filter((trace) => trace.visible !== false).length : 0;
  })])"""
POLICIES = """() => [...document.querySelectorAll(".chart .js-plotly-plot")].filter((plot) => plot.offsetParent)
  .flatMap((plot) => plot.data.filter((trace) => trace.visible !== false)
    .flatMap((trace) => trace.type === "heatmap" ? trace.y : trace.meta?.policy ? [trace.meta.policy] : []))"""


def drawn(page: Page) -> dict[str, list[int]]:
    """By chart, the traces that are seen in each of its panels."""
    return dict(page.evaluate(DRAWN))


def choose_everything(page: Page) -> int:
    """Every choice of every chart, one after another; how many there were."""
    chosen = 0
    for select in page.locator("select.variant").all():
        for place in range(select.locator("option").count()):
            select.select_option(index=place)
            chosen += 1
        page.wait_for_timeout(50)
    return chosen


def settled(page: Page, words: str, argument: Any = None) -> None:
    page.wait_for_function(words, arg=argument, timeout=30_000)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts")
    return report_of(simulated_run(folder, policies=("fifo", "sjf", "fair"), modes=MODES, count=40))


def test_every_panel_is_drawn_and_every_choice_switches(open_page: Open, report: Path) -> None:
    page = open_page(report)
    found = drawn(page)
    assert list(found) == [
        *("tradeoff", "heat_map", "differences", "arrivals", "distributions", "lengths"),
        *("service", "efficiency", "timeline"),
    ]
    assert all(panels and all(panels) for panels in found.values())
    assert found["tradeoff"] == [3 * 3 + 3]  # arms, and a line through the sizes of each policy
    assert found["distributions"] == [3, 3, 3]
    assert page.locator(".modebar-btn").count() > 20
    assert page.locator(".modebar-btn[data-title^=Share]").count() == 0  # nothing is sent anywhere
    page.locator("#tradeoff-0 select.variant").select_option("goodput")
    settled(page, """() => document.querySelector("#tradeoff-0 .ytitle")?.textContent === "goodput, %" """)
    assert choose_everything(page) > 30
    settled(page, """() => document.querySelectorAll(".chart .panel .main-svg").length > 20""")


def test_a_policy_and_a_mode_that_are_put_aside_leave_every_chart(open_page: Open, report: Path) -> None:
    page = open_page(report)
    assert set(page.evaluate(POLICIES)) == {"fifo", "sjf", "fair"}
    page.locator("#policies button", has_text="sjf").click()
    settled(page, f"() => !({POLICIES})().includes('sjf')")
    page.locator("#settings button", has_text="static").click()
    settled(page, """() => document.querySelectorAll("#heat_map-0 .xtick").length === 2""")
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#heat_map-0 .ytick").count() == 2
    assert drawn(page)["arrivals"] == [4, 4]  # of two policies: marks, and the line of medians
    assert set(page.evaluate(POLICIES)) == {"fifo", "fair"}
    page.locator("#everything").click()
    page.wait_for_selector("html[data-ready]")
    sizes = """() => document.querySelector("#tradeoff-0 .js-plotly-plot").data
      .filter((trace) => trace.mode === "lines").map((trace) => trace.x.length)"""
    assert page.evaluate(sizes) == [2, 2, 2]
    page.locator("#settings button", has_text="max_running=2").click()
    settled(page, f"() => ({sizes})().every((size) => size === 1)")


def test_names_are_written_as_they_are(open_page: Open, tmp_path: Path) -> None:
    page = open_page(report_of(awkward_run(tmp_path)), width=360)
    written = page.locator("#heat_map-0 .ytick").all_text_contents()
    assert written[:5] == ["fifo", "<b>bold</b>", "$a$", "%{x}", "_x"]
    assert written[6] == "n" * 19 + "…"
    assert all(panels for panels in drawn(page).values())
    assert page.locator("#service-0 .key").text_content().startswith("<i>user</i>")
    choose_everything(page)
    wide = """() => [...document.querySelectorAll(".chart")].filter((each) => each.scrollWidth > each.clientWidth)"""
    assert page.evaluate(f"({wide})().map((each) => each.id)") == []


def test_loads_are_drawn_once_with_the_first_of_them(open_page: Open, tmp_path: Path) -> None:
    page = open_page(report_of(load_run(tmp_path, LOADS)), scheme="dark")
    assert drawn(page)["loads"] == [2]
    assert page.locator("#loads-0").count() == 1
    assert page.locator("#loads-1").count() == 0
