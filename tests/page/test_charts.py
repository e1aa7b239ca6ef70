"""The interactive charts: what they draw is what the rows say, Plotly takes it, and no name becomes markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import plotly.graph_objects as plotly
import pytest
from charted import LOADS, awkward_run, queue_run
from runs import cell_entry, load_run, request_row, simulated_run, static_batch, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.metrics.arms import Values, arms
from replay.plots.view import View, views
from replay.report.charts import Chart, Panel, charts
from replay.report.findings import Findings, find
from replay.results import read_run

Shown = tuple[View, Findings]


def shown(folder: Path) -> Shown:
    findings = find(read_run(folder))
    return views(findings.run, findings.measured, every_policy=True)[0], findings


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Three policies in two modes, one at two sizes, each run twice."""
    modes = {
        "static": {"batch_size": 8},
        "continuous max_running=2": {"max_running": 2, "token_budget": 512},
        "continuous max_running=8": {"max_running": 8, "token_budget": 512},
    }
    folder = tmp_path_factory.mktemp("grid")
    return shown(simulated_run(folder, policies=("fifo", "sjf", "fair"), modes=modes, repeats=2))


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return shown(queue_run(tmp_path_factory.mktemp("queue")))


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return shown(awkward_run(tmp_path_factory.mktemp("awkward")))


def chart(name: str, found: Shown) -> Chart:
    made = charts[name](*found)
    assert made is not None
    return made


def panels(made: Chart) -> Iterator[Panel]:
    for variant in made.variants.values():
        yield from variant


def test_the_page_begins_with_what_a_reader_with_a_minute_looks_at() -> None:
    assert list(charts)[:3] == ["tradeoff", "heat_map", "differences"]


@pytest.mark.parametrize("name", list(charts))
def test_plotly_takes_every_panel_and_the_same_rows_give_the_same_bytes(
    name: str, grid: Shown, awkward: Shown, queue: Shown, tmp_path: Path
) -> None:
    drawn = 0
    for found in (
        grid,
        awkward,
        queue,
        shown(static_batch(tmp_path / "one")),
        shown(load_run(tmp_path / "loads", LOADS)),
    ):
        made = charts[name](*found)
        if made is None:
            continue
        drawn += 1
        for panel in panels(made):
            plotly.Figure(deepcopy(panel.data), panel.layout)  # it takes from what it is given
        again = charts[name](*found)
        assert again is not None
        assert json.dumps(again.spec(), allow_nan=False) == json.dumps(made.spec(), allow_nan=False)
        assert made.title
        assert made.note
    assert drawn


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text that Plotly reads, with the key under which it stands; `meta` is the page's."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "meta":
                yield from texts(inner, name)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts(inner, key)
    elif isinstance(value, str):
        yield key, value


def test_no_name_is_markup_or_part_of_a_template(awkward: Shown) -> None:
    """Categories alone have names as they are, and Plotly writes `ticktext` in their place."""
    read = 0
    for name in charts:
        made = charts[name](*awkward)
        for panel in panels(made) if made is not None else ():
            for key, text in texts([panel.data, panel.layout]):
                if key in ("x", "y", "tickvals", "categoryarray"):
                    continue
                read += 1
                assert "<b>bold" not in text, (name, key)
                assert "<i>user" not in text, (name, key)
                assert "n" * 60 not in text, (name, key)
                if key.endswith("template"):
                    assert not any(each in text for each in ("bold", "$a$", "🐢", "nnn")), (name, key)
    assert read > 100


def test_a_heat_map_has_the_summarys_values_and_the_best_is_bold(grid: Shown) -> None:
    (panel,) = chart("heat_map", grid).variants["E2E p50, ms (lower is better)"]
    view, findings = grid
    judged = panel.data[0]
    summary = Values(measure(findings.run).summary)
    found = {(arm.policy, arm.setting): summary.value(arm, "e2e", "p50") for arm in arms(findings.run)}
    for policy, merits, row in zip(judged["y"], judged["z"], judged["text"], strict=True):
        for setting, merit, text in zip(judged["x"], merits, row, strict=True):
            value = found[policy, setting]
            assert value is not None
            bare = text.removeprefix("<b>").removesuffix("</b>")
            assert float(bare.replace(",", "")) == pytest.approx(value * 1000, rel=0.01)
            assert (merit == 1) == (bare != text) == (value == min(found.values()))
            assert (merit == 0) == (value == max(found.values()))
    assert judged["y"] == ["fifo", "sjf", "fair"]
    assert judged["x"] == view.settings


def test_a_cell_that_is_invalid_is_grey_and_stands_for_nothing(awkward: Shown) -> None:
    made = chart("heat_map", awkward)
    judged, others = made.variants["TTFT p50, ms (lower is better)"][0].data
    place = judged["y"].index("_x")  # its arrivals were taken in too late
    assert judged["z"][place] == [None]
    assert others["z"][place] == [0.5]
    assert "(invalid)" in others["hovertext"][place][0]


def test_an_arm_stands_at_its_throughput_and_latency_and_says_everything(grid: Shown) -> None:
    (panel,) = chart("tradeoff", grid).variants["TTFT p95"]
    view, _ = grid
    arm = view.arm("continuous (max_running=2)", "sjf")
    assert arm is not None
    (mark,) = [
        trace
        for trace in panel.data
        if "markers" in trace["mode"] and trace["meta"]["setting"] == arm.setting and trace["meta"]["policy"] == "sjf"
    ]
    throughput, ttft = view.values.value(arm, "output_throughput", "value"), view.values.value(arm, "ttft", "p95")
    assert mark["x"] == [pytest.approx(throughput, rel=1e-4)]
    assert mark["y"] == [pytest.approx(1000 * (ttft or 0), rel=1e-4)]
    for words in ("<b>sjf</b>, continuous (max_running=2)", "output: ", "TTFT p95", "TPOT p95", "E2E p95", "2 repeats"):
        assert words in mark["hovertext"]
    lines = [trace["meta"] for trace in panel.data if trace["mode"] == "lines"]
    sizes = ["continuous (max_running=2)", "continuous (max_running=8)"]
    assert lines == [{"policy": policy, "points": sizes} for policy in ("fifo", "sjf", "fair")]


def test_marks_that_lie_on_each_other_are_rings(queue: Shown) -> None:
    """`fifo` and `late` run alike in every figure of the plane but TTFT."""
    (panel,) = chart("tradeoff", queue).variants["goodput"]
    sizes = [trace["marker"]["size"] for trace in panel.data]
    assert sizes[0] > sizes[1]
    assert "also here: late" in panel.data[0]["hovertext"]


def test_a_difference_is_a_share_of_the_base_and_hollow_where_it_is_not_seen(grid: Shown) -> None:
    view, findings = grid
    variants = chart("differences", grid).variants
    drawn = {
        (panel.title, trace["y"][0]): trace
        for panel in variants["policies against fifo: mean TTFT"]
        for trace in panel.data
    }
    assert len(drawn) == 6
    for pair in findings.contrasts[view.trace].policies:
        difference, trace = pair.differences["ttft"], drawn[pair.other.setting, pair.other.policy]
        assert difference.difference is not None
        assert difference.base_mean is not None
        assert trace["x"] == [pytest.approx(difference.difference / difference.base_mean, rel=1e-4)]
        assert trace["meta"].get("filling", "") == ("" if difference.seen else "-open")
        assert ("no difference seen" in trace["hovertext"]) == (not difference.seen)
        bounds = difference.relative_bounds
        assert bounds is not None
        assert trace["x"][0] + trace["error_x"]["array"][0] == pytest.approx(bounds[1], abs=1e-3)
        assert trace["x"][0] - trace["error_x"]["arrayminus"][0] == pytest.approx(bounds[0], abs=1e-3)
    modes = variants["modes against each other: mean TTFT"]
    assert [panel.title for panel in modes] == ["continuous against static"]


def test_each_request_stands_where_it_arrived_and_who_got_no_token_in_a_lane_above(queue: Shown) -> None:
    (panel,) = chart("arrivals", queue).variants["each request"]
    marks, crosses = [trace for trace in panel.data if trace["name"] == "late" and trace["mode"] == "markers"]
    assert marks["x"][:3] == [0, 1, 2]
    assert marks["y"][:3] == [100, 200, 300]  # each waits 100 ms longer than the one before
    assert marks["customdata"] == list(range(24))
    assert crosses["x"] == [24.0]
    assert crosses["customdata"] == ["request 24: rejected"]
    assert crosses["y"][0] > 2400
    assert panel.layout["yaxis"]["range"][1] > crosses["y"][0]


def test_of_neighbouring_arrivals_the_median_and_the_slowest(queue: Shown) -> None:
    """25 arrivals are two stretches of 8 and one of 9, whose last got no token."""
    made = chart("arrivals", queue)
    (median,), (slowest,) = made.variants["median"], made.variants["slowest"]
    line = next(trace for trace in median.data if trace["name"] == "late")
    assert line["x"] == [3.5, 11.5, 20.0]
    assert line["y"] == [450, 1250, 2100]
    assert next(trace for trace in slowest.data if trace["name"] == "late")["y"] == [800, 1600, None]


def test_a_tail_has_the_share_of_those_that_took_longer(queue: Shown) -> None:
    (panel,) = chart("distributions", queue).variants["time to first token: the slow tail"]
    late = next(trace for trace in panel.data if trace["name"] == "late")
    slower = dict(zip(late["x"], late["y"], strict=True))
    assert slower[2400] == pytest.approx(1 / 25)  # the one without a token
    assert slower[1200] == pytest.approx(13 / 25)


def test_groups_have_their_means_in_their_own_order(queue: Shown) -> None:
    made = chart("lengths", queue)
    (panel,) = made.variants["TTFT by user"]
    late = next(trace for trace in panel.data if trace["name"] == "late")
    assert panel.layout["yaxis"]["ticktext"] == ["ana (13)", "ben (12)"]
    assert late["x"] == [pytest.approx(1200), pytest.approx(1300)]  # of 100, 300, ... 2300 and of 200, 400, ... 2400


def test_fairness_has_the_slowdown_of_the_user_who_is_worst_off(queue: Shown) -> None:
    (even, worst) = chart("efficiency", queue).variants[""]
    late = next(trace for trace in worst.data if trace["name"] == "late")
    assert late["y"] == [pytest.approx(13.0)]  # ben's mean end-to-end time over the 100 ms that each takes alone
    assert even.layout["yaxis"]["range"][1] > 1


def test_service_is_drawn_for_each_policy_of_a_mode(queue: Shown) -> None:
    made = chart("service", queue)
    assert [(panel.title, panel.policy) for panel in made.variants["continuous"]] == [
        ("fifo", "fifo"),
        ("late", "late"),
    ]
    assert [entry.label for entry in made.key] == ["ana", "ben"]


def test_the_engine_over_time_is_averaged_over_bins(tmp_path: Path) -> None:
    """A step from 0 to 1 s with one request, nothing until 3 s, a step to 4 s with three: 200 bins of 20 ms."""
    steps = [
        step_row(0, 0.0, 1.0, running=1, new_tokens=10, waiting=2),
        step_row(1, 3.0, 4.0, running=3, new_tokens=20, waiting=5),
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[1.0, 4.0])], steps)
    made = chart("timeline", shown(write_manifest(tmp_path, [cell_entry("continuous-fifo")])))
    found = {name: variant[0].data[0] for name, variant in made.variants.items()}
    assert found["running requests"]["dx"] == pytest.approx(0.02)
    assert found["running requests"]["y"] == [1] * 50 + [0] * 100 + [3] * 50
    assert found["waiting requests"]["y"] == [2] * 150 + [5] * 50
    assert found["output tokens per second"]["y"] == [10] * 50 + [0] * 100 + [20] * 50
    assert "evictions so far" not in made.variants


def test_loads_have_a_line_for_each_policy_and_a_wall_where_they_part(tmp_path: Path) -> None:
    """sjf's first tokens come after 500, 300 and 100 ms at one, two and eight times the load, fifo's after 500."""
    made = chart("loads", shown(load_run(tmp_path, LOADS)))
    (panel,) = made.variants["mean TTFT"]
    lines = {trace["name"]: (trace["x"], trace["y"]) for trace in panel.data}
    assert lines == {"fifo": ([1, 2, 8], [500, 500, 500]), "sjf": ([1, 2, 8], [500, 300, 100])}
    assert [shape["x0"] for shape in panel.layout["shapes"]] == [2.0]
    assert panel.title == "continuous: policies part from 2x on"


def test_nothing_is_drawn_of_what_is_not_there(tmp_path: Path) -> None:
    found = shown(static_batch(tmp_path))
    assert charts["heat_map"](*found) is None  # one arm
    assert charts["differences"](*found) is None
    assert charts["loads"](*found) is None
