"""Policy by mode: figures as the tables have them, the best and the worst by the metric's own direction."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from pictures import one_request, two_panels, view, words
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.errors import ExperimentError
from replay.plots import draw, plots
from replay.plots.canvas import look
from replay.plots.heat_map import BEST, COLOURS, WORST, heat_map_of


def cells(axes: Axes) -> dict[tuple[str, str], str]:
    """What is written in each cell, by setting and policy."""
    columns = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    places = {text.get_position(): text.get_text() for text in axes.texts}
    return {(columns[int(x)], rows[int(y)]): text for (x, y), text in places.items()}


def colours(axes: Axes) -> list[list[str]]:
    (mesh,) = (one for one in axes.collections if one.get_array() is not None)
    return [[to_hex(colour) for colour in row] for row in mesh.get_array()]


def test_every_figure_is_written_and_the_ends_are_marked(tmp_path: Path) -> None:
    with look():
        figure = heat_map_of(view(two_panels(tmp_path)), "ttft", "p99")
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "TTFT p99, ms\nlower is better"
    assert cells(axes) == {
        ("continuous", "fifo"): f"{BEST} 10.0",
        ("continuous", "sjf"): "20.0",
        ("continuous", "priority"): "30.0",
        ("static", "fifo"): "40.0",
        ("static", "sjf"): "no data",
        ("static", "priority"): f"{WORST} 60.0",
    }
    painted = colours(axes)
    assert painted[0][0] == to_hex(COLOURS(1.0)), "fifo in continuous is the fastest"
    assert painted[2][1] == to_hex(COLOURS(0.0))


def test_where_higher_is_better_the_highest_is_the_best(tmp_path: Path) -> None:
    """fifo has 3 tokens in 120 ms, sjf in 220 ms."""
    for policy, ends in (("fifo", [0.1, 0.11, 0.12]), ("sjf", [0.2, 0.21, 0.22])):
        write_tables(tmp_path / "cells" / f"continuous-{policy}", [request_row(0, token_times=ends)])
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=1)
    with look():
        (axes,) = heat_map_of(view(folder), "output_throughput").axes
    assert cells(axes) == {("continuous", "fifo"): f"{BEST} 25.0", ("continuous", "sjf"): f"{WORST} 13.6"}
    assert axes.get_title(loc="left") == "output tokens/s\nhigher is better"


def test_who_is_invalid_is_hatched_and_not_judged(tmp_path: Path) -> None:
    for policy, first in (("fifo", 0.2), ("sjf", 0.1), ("fair", 0.3)):
        write_tables(tmp_path / "cells" / f"continuous-{policy}", [request_row(0, token_times=[first])])
    late = {"valid": False, "invalid_reason": "lag"}
    listed = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf", **late), cell_entry("continuous-fair")]
    with look():
        figure = heat_map_of(view(write_manifest(tmp_path, listed, rows=1)), "ttft", "mean")
    (axes,) = figure.axes
    assert cells(axes) == {
        ("continuous", "fifo"): f"{BEST} 200",
        ("continuous", "sjf"): "100",
        ("continuous", "fair"): f"{WORST} 300",
    }
    (hatched,) = axes.patches
    assert (hatched.get_hatch(), hatched.get_y()) == ("////", 0.5)
    assert "invalid or partial: not judged" in words(figure)


def test_what_is_alike_everywhere_is_neither_best_nor_worst(tmp_path: Path) -> None:
    with look():
        (axes,) = heat_map_of(view(two_panels(tmp_path)), "tpot", "mean").axes
    assert {text for text in cells(axes).values() if text != "no data"} == {"10.0"}


def test_every_policy_of_many_is_in_it(tmp_path: Path) -> None:
    names = ["fifo", *(f"own{place}" for place in range(11))]
    for place, policy in enumerate(names):
        rows = [request_row(0, token_times=[0.1 + 0.01 * place])]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows)
    folder = write_manifest(tmp_path, [cell_entry(f"continuous-{policy}") for policy in names], rows=1)
    with look():
        figure = heat_map_of(view(folder), "ttft", "p50")
    assert [policy for _, policy in cells(figure.axes[0])] == names
    assert "8 of 12" not in words(figure)


def test_a_metric_or_statistic_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    seen = view(two_panels(tmp_path))
    with pytest.raises(ExperimentError, match=r"there is no metric 'tftt': did you mean 'ttft'\?"):
        heat_map_of(seen, "tftt")
    with pytest.raises(ExperimentError, match=r"ttft has no statistic 'p98': did you mean 'p9"):
        heat_map_of(seen, "ttft", "p98")
    with pytest.raises(ExperimentError, match="statistic: say of which metric"):
        draw(seen.run, "heat_map", statistic="p50")


def test_a_command_may_ask_for_one_metric(tmp_path: Path) -> None:
    (axes,) = draw(two_panels(tmp_path), "heat_map", metric="e2e", statistic="max", mode="continuous").axes
    assert axes.get_title(loc="left").startswith("E2E max, ms")
    assert set(cells(axes)) == {("continuous", policy) for policy in ("fifo", "sjf", "priority")}


def test_the_picture_of_a_run_has_the_figures_that_the_run_has(tmp_path: Path) -> None:
    with look():
        figure = plots["heat_map"](view(two_panels(tmp_path / "two")))
        assert figure is not None
        titles = [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes]
        # nobody was evicted, and one user is even with himself
        assert titles[:4] == ["TTFT p99, ms", "delivered TTFT p99, ms", "TPOT p99, ms", "E2E mean, ms"]
        assert titles[4:] == ["longest wait, ms", "output tokens/s", "goodput, %"]
        assert plots["heat_map"](view(one_request(tmp_path / "one"))) is None, "one cell is no map"
        for name in ("a", "b"):
            write_tables(tmp_path / "failed" / "cells" / f"static-{name}", [request_row(0, status="failed")])
        failed = write_manifest(tmp_path / "failed", [cell_entry("static-a"), cell_entry("static-b")], rows=1)
        empty = plots["heat_map"](view(failed))
        assert empty is not None
        assert [axes.get_title(loc="left").split("\n")[0] for axes in empty.axes] == ["longest wait, ms", "goodput, %"]
