"""The explorer of report.html: what is packed is what the Parquet files hold, and what is drawn is what is in the
seconds that a reader chose."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browsing import Open, report_of
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Locator, Page
from runs import cell_entry, request_row, simulated_run, span_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.plots.slot_time import Window, mean_queue, queue, slot_shares
from replay.plots.view import views
from replay.report.findings import find
from replay.report.page import explorer, explorer_bins
from replay.report.page import page as page_of
from replay.report.page.blobs import packed_json
from replay.report.page.explorer import explorers
from replay.report.page.explorer_bins import overview
from replay.report.page.explorer_cell import KINDS, LOST, STAMPS, STATUSES, packed_requests, packed_spans, tick_of
from replay.results import read_run

TICK = 1e-6
KEPT = ["row", "slot", "kind", "start", "end", "tokens", "padding_tokens"]


def column(packed: dict[str, Any], name: str) -> list[Any]:
    found = packed[name]
    return found if isinstance(found, list) else [found] * packed["count"]


def read_spans(packed: dict[str, Any], places: pl.DataFrame) -> list[tuple[Any, ...]]:
    """(row, slot, kind, lost, start, end, tokens, padding) of each, times in ticks."""
    rows, place, at = [], 0, 0
    columns = [column(packed, name) for name in ("gap", "length", "request", "kind", "tokens", "padding")]
    for slot, count in enumerate(packed["counts"]):
        ended = 0
        for gap, length, request, kind, tokens, padding in zip(
            *(each[at : at + count] for each in columns), strict=True
        ):
            place += request
            start, ended = ended + gap, ended + gap + length
            known = places.row(place, named=True)
            tokens += {0: known["prompt_tokens"], 1: known["output_tokens"] - 1}.get(kind % 4, 0)
            rows.append((known["row"], slot, KINDS[kind % 4], kind // 4, start, ended, tokens, padding))
        at += count
    return rows


def ticks(seconds: float) -> int:
    return round(seconds / TICK)


@st.composite
def cells(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Requests, and spans of some of them."""
    second = st.integers(0, 10**7).map(lambda number: number * TICK)
    maybe = st.none() | second
    count = draw(st.integers(1, 6))
    requests = [
        request_row(
            row,
            arrival=draw(second),
            due=draw(maybe),
            prompt_tokens=draw(st.integers(1, 500)),
            output_tokens=draw(st.integers(1, 500)),
            generated_tokens=draw(st.none() | st.integers(0, 500)),
            status=draw(st.sampled_from(STATUSES)),
            reason=draw(st.none() | st.just("too late")),
            evictions=draw(st.integers(0, 3)),
            **{name: draw(maybe) for name in STAMPS if name != "due"},
        )
        for row in draw(st.permutations(range(count)))
    ]
    spans = []
    for _ in range(draw(st.integers(0, 12))):
        kind, start = draw(st.sampled_from(KINDS)), draw(second)
        spans.append(
            span_row(
                draw(st.integers(0, count - 1)),
                draw(st.integers(0, 4)),
                kind,
                start,
                start + draw(second),
                tokens=draw(st.integers(0, 500)),
                padding_tokens=0 if kind == "padded" else draw(st.integers(0, 9)),
                ending=draw(st.sampled_from([*LOST, "completed"])),
            )
        )
    return requests, spans


def tables(requests: list[dict[str, Any]], spans: list[dict[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    stamps = dict.fromkeys(STAMPS, pl.Float64)
    whole = dict.fromkeys(("generated_tokens", "evictions", "swaps"), pl.Int64)
    schema = dict.fromkeys(("row", "slot", "tokens", "padding_tokens"), pl.Int64) | {
        "kind": pl.String,
        "ending": pl.String,
        "start": pl.Float64,
        "end": pl.Float64,
    }
    rows = pl.DataFrame(requests, infer_schema_length=None, schema_overrides={**stamps, **whole, "reason": pl.String})
    return rows, pl.DataFrame([{name: row[name] for name in schema} for row in spans], schema=schema)


@given(cells())
@settings(max_examples=25, deadline=None)
def test_what_is_packed_is_read_back(cell: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    requests, spans = tables(*cell)
    places = requests.sort("row").with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    lost = {name: place for place, name in enumerate(LOST, 1)}
    expected = [
        (*row[:3], lost.get(row[7], 0), ticks(row[3]), ticks(row[4]), *row[5:7])
        for row in spans.select(*KEPT, "ending").iter_rows()
    ]
    found = read_spans(packed_spans(spans, places, TICK), places)
    assert sorted(found) == sorted(expected)
    assert [row[1] for row in found] == sorted(row[1] for row in found)
    packed = packed_requests(requests, spans, places, TICK)
    held = spans.group_by("row").agg(
        begun=pl.col("start").min(),
        read=pl.col("end").filter(pl.col("kind") == "prefill").min(),
        written=pl.col("end").filter(pl.col("kind") == "decode").max(),
        left=pl.col("end").max(),
    )
    guesses = dict(zip(STAMPS[1:], ("begun", "read", "written", "left", "left"), strict=True))
    for at, row in enumerate(requests.sort("row").join(held, on="row", how="left").sort("row").iter_rows(named=True)):
        due = row["arrival"] if row["due"] is None else row["due"]
        for name in STAMPS:
            guess = row["arrival"] if name == "due" else due if row[guesses[name]] is None else row[guesses[name]]
            rest = column(packed, name)[at]
            assert (None if rest is None else rest + ticks(guess)) == (None if row[name] is None else ticks(row[name]))
        assert STATUSES[column(packed, "status")[at]] == row["status"]


def test_a_tick_suits_the_length_of_a_run() -> None:
    assert [tick_of(extent) for extent in (1e6, 20.0, 0.5, 1e-6)] == pytest.approx([1e-6, 1e-6, 1e-7, 1e-12], rel=1e-9)
    assert tick_of(1e-9, last=1e9) == pytest.approx(1e-6), "a million thousand million ticks, below 2 to the 53rd"


def test_a_request_takes_less_than_forty_letters() -> None:
    """So that 50 cells of 2,000 requests take less than the 4 MB that a page has for them."""
    draw, count, slots = random.Random(1), 2000, 16
    free, requests, spans, now = [0.0] * slots, [], [], 0.0
    for row in range(count):
        now += draw.expovariate(10)
        slot = min(range(slots), key=free.__getitem__)
        start = max(now, free[slot])
        first, last = start + draw.expovariate(20), start + 0.1 + draw.expovariate(1)
        free[slot] = end = last + draw.expovariate(2)
        for kind, begun, done in (("prefill", start, first), ("decode", first, last), ("padded", last, end)):
            spans.append(span_row(row, slot, kind, begun, done, padding_tokens=draw.randrange(100), tokens=100))
        requests.append(
            request_row(row, arrival=now, due=now, admitted=start, prompt_tokens=draw.randrange(1, 999))
            | {"first_token": first, "last_token": last, "finished": end, "ended": end}
        )
    rows, held = tables(requests, spans)
    places = rows.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    packed = [packed_spans(held, places, TICK), packed_requests(rows, held, places, TICK)]
    assert len(packed_json(packed, 6)) < 40 * count


def test_a_bin_has_the_averages_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second of nothing a step of 1 s with 2 requests, one of which stays for the next, a second later, which
    takes 2 s; one request waits for 1.5 s."""
    steps = pl.DataFrame(
        [
            step_row(0, 1.0, 2.0, running=2, used_blocks=5, new_tokens=3, bound="slots"),
            step_row(1, 3.0, 3.0, running=4, admitted=3, used_blocks=10),
            step_row(2, 3.0, 5.0, running=4, used_blocks=10, new_tokens=8, evicted=1),
        ]
    )
    requests, _ = tables([request_row(0, due=0.0, admitted=1.5, ended=4.0)], [])
    monkeypatch.setattr(explorer_bins, "BINS", 5)
    found = overview(steps, requests, (0.0, 5.0), 10)
    assert found == {
        "running": [0, 20, 10, 40, 40],
        "waiting": [10, 5, 0, 0, 0],
        "kv": [0, 50, 50, 100, 100],
        "rate": [0, 3, 0, 4, 4],
        "evicted": [0, 0, 0, 1, 0],
        "bound": [None, 1, None, 5, 5],
    }


def test_a_large_cell_keeps_the_part_around_its_fullest_seconds(tmp_path: Path) -> None:
    run = read_run(simulated_run(tmp_path, policies=("fifo",)))
    found = explorers(views(run, measure(run), every_policy=True), budget=150)
    assert len(found) == 4
    whole = json.loads(gzip.decompress(base64.b64decode(found["explorer-0"])))
    for entry, cell in zip(whole["cells"], run.cells, strict=True):
        start, end = entry["kept"]
        spans = cell.table("spans").filter((pl.col("start") < end) & (pl.col("end") > start))
        assert entry["spans"] == len(spans) <= 50
        assert start <= sum(whole["window"]) / 2 <= end


# ---- in a browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two policies in three modes."""
    return report_of(simulated_run(tmp_path_factory.mktemp("explorer"), policies=("fifo", "sjf")))


def opened(open_page: Open, report: Path, **size: Any) -> tuple[Page, Locator]:
    page = open_page(report, wait=False, **size)
    page.wait_for_selector(".explorer[data-drawn]")
    page.evaluate("document.getElementById('filter').style.position = 'static'")  # over nothing that is pointed at
    return page, page.locator(".explorer")


def choose(page: Page, which: str, value: str) -> None:
    page.locator(f"[data-choice={which}]").select_option(value)
    page.wait_for_function("""() => explorers[0].panels.every((panel, place) => panel.cell.entry ===
      explorers[0].chosen.filter(Boolean)[place]) && explorers[0].due === null""")


def set_window(page: Page, start: float, end: float) -> None:
    """By typing: first the end that lies outside what is shown."""
    places = page.locator(".explorer .window input")
    for _ in range(2):
        for place, value in ((1, end), (0, start)):
            places.nth(place).fill(str(value))
            places.nth(place).press("Enter")
    page.wait_for_function("() => explorers[0].due === null")


def drawn(page: Page, panel: int) -> list[tuple[Any, ...]]:
    found = page.evaluate(
        """(place) => {
          const { cell: { spans, trace }, seen } = explorers[0].panels[place];
          return seen.map((each) => [trace.row[spans.place[each]], spans.slot[each], trace.kinds[spans.kind[each]],
            spans.tokens[each], spans.start[each], spans.end[each]]);
        }""",
        panel,
    )
    return sorted(map(tuple, found))


def point_at(page: Page, panel: int, slot: int, time: float) -> tuple[float, float]:
    """Where on the screen a slot is at a time."""
    x, y = page.evaluate(
        """([place, slot, time]) => {
          const { canvas, area, width } = explorers[0].panels[place], { from, to } = explorers[0].view;
          canvas.scrollIntoView({ block: "center" });
          const box = canvas.getBoundingClientRect(), scale = box.width / width;
          return [box.left + (area.left + ((time - from) / (to - from)) * area.width) * scale,
            box.top + (area.top + (slot + 0.4) * area.tall) * scale];
        }""",
        [panel, slot, time],
    )
    return x, y


def test_the_bars_are_the_spans_of_the_seconds_that_were_chosen(open_page: Open, report: Path) -> None:
    page, figure = opened(open_page, report)
    choose(page, "A-setting", "dynamic")
    choose(page, "A-policy", "sjf")
    set_window(page, 2.0, 4.5)
    run = read_run(report.parent)
    for panel, name in enumerate(("dynamic-sjf-0", "continuous-fifo-0")):
        cell = next(cell for cell in run.cells if cell.name == name)
        spans = cell.table("spans")
        within = spans.filter((pl.col("start") < 4.5) & (pl.col("end") > 2.0))
        expected = [
            (row, slot, kind, tokens, start, end)
            for row, slot, kind, start, end, tokens, _ in within.select(KEPT).iter_rows()
        ]
        assert len(expected) > 10
        found = drawn(page, panel)
        assert [row[:4] for row in found] == [row[:4] for row in sorted(expected)]
        assert [time for row in found for time in row[4:]] == pytest.approx(
            [time for row in sorted(expected) for time in row[4:]], abs=1e-6
        )
        window = Window(2.0, 4.5, whole=False)
        said = figure.locator(".words").nth(panel).inner_text()
        assert said.startswith(f"{slot_shares(spans, 8, window)}; ")
        mean = float(mean_queue(queue(cell), window).split(" ")[0])
        assert float(said.split("; ")[1].split(" ")[0]) == pytest.approx(mean, abs=0.51)  # it has two digits


def test_a_request_is_told_and_followed_into_the_other_cell(open_page: Open, report: Path) -> None:
    page, figure = opened(open_page, report)
    set_window(page, 0.0, 3.0)
    cells = {cell.name: cell for cell in read_run(report.parent).cells}
    span = cells["static-fifo-0"].table("spans").filter(kind="decode").sort("start").row(3, named=True)
    page.mouse.move(*point_at(page, 0, span["slot"], (span["start"] + span["end"]) / 2))
    tip = figure.locator(".tip").first.inner_text().replace("\u00a0", " ")
    request = cells["static-fifo-0"].table("requests").row(by_predicate=pl.col("row") == span["row"], named=True)
    assert f"request {span['row']}\n" in tip
    assert f"{request['prompt_tokens']} prompt tokens, {request['output_tokens']} output tokens" in tip
    assert f"decode in slot {span['slot'] + 1}, {span['start']:.3f} s to {span['end']:.3f} s" in tip
    assert f"arrived at {request['arrival']:.3f} s" in tip
    assert "8 running" in tip
    page.mouse.down()
    page.mouse.up()
    pinned = figure.locator(".pinned")
    pinned.wait_for()
    other = cells["continuous-fifo-0"].table("requests").row(by_predicate=pl.col("row") == span["row"], named=True)
    texts = pinned.locator("tr", has_text="E2E").locator("td").all_inner_texts()
    for text, row in zip(texts, (request, other), strict=False):
        value, unit = text.split(" ")
        assert float(value) * {"s": 1, "ms": 1e-3}[unit] == pytest.approx(row["finished"] - row["due"], rel=0.01)
    assert texts[2].startswith("−" if other["finished"] < request["finished"] else "+")  # noqa: RUF001  # a minus
    figure.locator(".list summary").click()
    chosen = figure.locator(".list tr.chosen td").first
    assert chosen.inner_text() == str(span["row"])
    figure.locator(".list th", has_text="prompt").get_by_role("button").click()
    prompts = [int(text) for text in figure.locator(".list tbody tr td:nth-child(4)").all_inner_texts()]
    assert len(prompts) > 10
    assert prompts == sorted(prompts, reverse=True)
    figure.get_by_text("let go").click()
    pinned.wait_for(state="hidden")


def window_of(page: Page) -> list[float]:
    page.wait_for_function("() => explorers[0].due === null")
    found: list[float] = page.evaluate("[explorers[0].view.from, explorers[0].view.to]")
    return found


def test_seconds_are_brushed_by_pointer_keys_and_buttons(open_page: Open, report: Path) -> None:
    page, figure = opened(open_page, report)
    overview = figure.locator(".overview")
    overview.scroll_into_view_if_needed()
    figure.get_by_text("whole run").click()
    first, last = window_of(page)
    box = overview.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 30)
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 40)
    page.mouse.up()
    whole = last - first
    start, end = window_of(page)
    assert [start, end] == pytest.approx([first + 0.25 * whole, first + 0.5 * whole], abs=0.01 * whole)
    overview.press("ArrowRight")
    assert window_of(page) == pytest.approx([start + 0.0625 * whole, end + 0.0625 * whole], abs=0.01 * whole)
    overview.press("-")
    length = window_of(page)
    assert length[1] - length[0] == pytest.approx(0.5 * whole, abs=0.01 * whole)
    figure.get_by_text("fullest seconds").click()
    assert window_of(page) == pytest.approx(page.evaluate("explorers[0].trace.window"))


def test_a_mode_that_is_put_aside_is_no_choice_and_a_phone_shows_all(open_page: Open, report: Path) -> None:
    page, figure = opened(open_page, report, width=360)
    page.locator("#settings button", has_text="static").click()
    page.wait_for_function("() => explorers[0].panels[0].cell.entry.setting !== 'static'")
    modes = figure.locator("[data-choice=A-setting] option").all_inner_texts()
    assert modes == ["dynamic", "continuous"]
    assert page.evaluate("explorers[0].panels[0].cell.entry.policy") == "fifo"
    choose(page, "B-setting", "nothing beside it")
    assert figure.locator(".cell").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_odd_cells_are_told_for_what_they_are(open_page: Open, tmp_path: Path) -> None:
    """One with more bars than can be told apart, one that left a part without spans, one that is invalid."""
    name = "<b>&</b>"
    requests = [
        request_row(0, token_times=[0.1, 0.2], admitted=0.0, user=name),
        request_row(1, status="rejected", reason="the queue is full", arrival=0.1),
    ]
    steps = [step_row(0, 0.0, 0.2, running=1)]
    many = [span_row(0, slot, "decode", at / 2000, (at + 1) / 2000) for slot in range(16) for at in range(400)]
    write_tables(tmp_path / "cells" / "continuous-fifo", requests, steps, many)
    write_tables(tmp_path / "cells" / "continuous-sjf", requests[:1], [], [], part=0)
    write_tables(tmp_path / "cells" / "static-fair", requests, steps, [span_row(0, 0, "paused", 0.1, 0.2)])
    late = {"valid": False, "invalid_reason": "lag of 99 ms"}
    write_manifest(
        tmp_path,
        [
            cell_entry("continuous-fifo", slots=16),
            cell_entry("continuous-sjf", slots=None, blocks=None, status="interrupted"),
            cell_entry("static-fair", slots=1, **late),
        ],
    )
    page, figure = opened(open_page, report_of(tmp_path))
    choose(page, "B-setting", "static")
    figure.get_by_text("whole run").click()
    assert "6,400 bars are too many to tell apart: zoom in" in figure.locator(".words").first.inner_text()
    assert "(invalid: lag of 99 ms)" in figure.locator(".cell h4").nth(1).inner_text()
    choose(page, "A-policy", "sjf")
    assert "(partial: it did not run to its end)" in figure.locator(".cell h4").first.inner_text()
    assert "nothing of it was recorded" in figure.locator(".words").first.inner_text()
    figure.locator(".list summary").click()
    assert name in figure.locator(".list tbody").inner_text()


def test_a_part_of_a_large_replay_is_told_to_be_one(
    open_page: Open, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "BUDGET", 400)
    written, _ = page_of(find(read_run(report.parent)))
    part = tmp_path / "report.html"
    part.write_text(written, encoding="utf-8")
    page, figure = opened(open_page, part)
    figure.get_by_text("whole run").click()
    page.wait_for_function("() => explorers[0].due === null")
    words = figure.locator(".words").first.inner_text()
    assert words.startswith("Of this large replay the page holds ")
    assert "idle" not in words  # of seconds that it does not hold
