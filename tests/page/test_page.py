"""report.html in a real browser: it opens from disk, sorts, filters, draws, and complains of nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Open, report_of
from playwright.sync_api import Page
from runs import simulated_run

WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of three policies in three modes."""
    return report_of(simulated_run(tmp_path_factory.mktemp("page"), policies=("fifo", "sjf", "fair")))


def column(page: Page, head: str) -> list[str]:
    """The cells of a column of the first table that are shown, from the top down."""
    return page.evaluate(
        """(head) => {
          const table = document.querySelector("table.arms");
          const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === head);
          const rows = [...table.tBodies[0].rows].filter((row) => row.offsetParent);
          return rows.map((row) => row.cells[at].textContent.trim());
        }""",
        head,
    )


def test_a_click_on_a_head_sorts_the_best_first_and_another_turns_it_round(open_page: Open, report: Path) -> None:
    page = open_page(report, wait=False)
    rates = column(page, "output tokens/s")
    page.locator("table.arms th", has_text="output tokens/s").first.get_by_role("button").click()

    def numbers() -> list[float]:
        return [float(text.split(" ")[0].replace(",", "")) for text in column(page, "output tokens/s")]

    assert len(rates) == 9
    assert numbers() == sorted(numbers(), reverse=True)
    page.locator("table.arms th", has_text="output tokens/s").first.get_by_role("button").click()
    assert numbers() == sorted(numbers())


def test_a_policy_and_a_mode_that_are_put_aside_leave_tables_and_charts(open_page: Open, report: Path) -> None:
    page = open_page(report)
    page.locator("#policies button", has_text="sjf").click()
    page.locator("#settings button", has_text="static").click()
    assert column(page, "policy") == ["fifo", "fair"] * 2
    assert set(column(page, "mode")) == {"dynamic", "continuous"}
    page.wait_for_selector("html[data-ready]")
    drawn = page.evaluate(
        """() => {
          const boxes = [...document.querySelectorAll("#distributions-0 .panel")].filter((box) => box.offsetParent);
          const names = (plot) => plot.data.filter((trace) => trace.visible).map((trace) => trace.name);
          return boxes.map((box) => [
            box.querySelector("h4").textContent, names(box.querySelector(".js-plotly-plot"))]);
        }"""
    )
    assert drawn == [["dynamic", ["fifo", "fair"]], ["continuous", ["fifo", "fair"]]]
    assert page.evaluate(WIDTH) <= 1280
    page.locator("#policies button", has_text="fair").dblclick()
    assert column(page, "policy") == ["fair"] * 2
    page.locator("#everything").click()
    assert len(column(page, "policy")) == 9


def test_on_a_phone_nothing_is_wider_than_the_window(open_page: Open, report: Path) -> None:
    assert open_page(report, width=360).evaluate(WIDTH) <= 360


def test_policies_across_a_table_are_put_aside_with_it(open_page: Open, report: Path) -> None:
    page = open_page(report, wait=False)
    heads = """() => [...document.querySelectorAll("details.chapter table")].map((table) => table.tHead.rows[0])
      .filter((row) => row.textContent.includes("user")).map((row) => [...row.cells])
      .map((cells) => cells.filter((cell) => !cell.closest(".gone")).map((cell) => cell.textContent))"""
    before = page.evaluate(heads)
    assert ["user", "requests", "fifo", "sjf", "fair"] in [[cell.strip() for cell in row] for row in before]
    page.locator("#policies button", has_text="sjf").click()
    assert page.evaluate(heads) == [[cell for cell in row if cell != "sjf"] for row in before]
    page.locator("#settings button", has_text="static").click()
    assert sum(map(bool, page.evaluate(heads))) < len(before)


def test_tables_are_chosen_with_the_arrow_keys(open_page: Open, report: Path) -> None:
    page = open_page(report, wait=False)
    page.locator("[role=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "The engine"
    assert page.locator("[role=tab][tabindex='0']").all_inner_texts() == ["The engine"]
    assert [panel.get_attribute("id") for panel in page.locator(".tab:visible").all()] == ["table-0-5"]


def test_dark_is_dark_and_the_button_turns_it_light(open_page: Open, report: Path) -> None:
    page = open_page(report, scheme="dark", wait=False)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 23, 27)"
    page.locator("#theme").click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"


def test_the_same_rows_give_the_same_bytes(report: Path) -> None:
    first = report.read_bytes()
    assert report_of(report.parent).read_bytes() == first
