"""Time to first token against arrival: every request is there, also who never got a token, and what is thinned is
told."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from matplotlib.colors import to_hex
from pictures import drawn, one_request, view, words
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.plots.arrivals import MOST_MARKS, stretches
from replay.plots.view import KNOWN


def turned_away(folder: Path) -> Path:
    """fifo: a request each second, whose TTFTs climb by 100 ms; the last two of ten are rejected. sjf serves all."""
    for policy, served in (("fifo", 8), ("sjf", 10)):
        rows = [request_row(row, arrival=row, token_times=[row + 0.1 * (row + 1)]) for row in range(served)]
        rows += [request_row(row, arrival=row, status="rejected") for row in range(served, 10)]
        write_tables(folder / "cells" / f"continuous-{policy}", rows)
    return write_manifest(folder, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=10)


def test_marks_are_requests_and_lanes_those_without_a_token(tmp_path: Path) -> None:
    figure = drawn("arrivals", turned_away(tmp_path))
    (axes,) = figure.axes
    blue, circle = KNOWN["fifo"]
    mine = [line for line in axes.lines if to_hex(line.get_color()).upper() == blue.upper()]
    (marks,) = (line for line in mine if line.get_marker() == circle)
    assert list(marks.get_xdata()) == list(range(8))
    assert list(marks.get_ydata()) == pytest.approx([100.0 * (row + 1) for row in range(8)])
    (lane,) = (line for line in axes.lines if line.get_marker() == "|")
    assert to_hex(lane.get_color()).upper() == blue.upper()
    assert list(lane.get_xdata()) == [8, 9]
    # above every mark: heights of a lane are shares of the panel
    assert lane.get_ydata()[0] > max(marks.get_ydata()) / axes.get_ylim()[1]
    assert [text.get_text() for text in axes.texts] == ["2"]
    assert "no first token, and how many" in words(figure)
    assert "no first token" not in words(drawn("arrivals", one_request(tmp_path / "all served")))


def test_the_median_counts_who_got_no_token_as_the_slowest() -> None:
    rows = pl.DataFrame({"due": [0.0, 1, 2, 3, 4, 5, 6], "ttft": [10.0, 30, 20, 5, None, None, 7]})
    found = stretches(rows, 3, {"ttft": 50.0})  # the seventh is one with the second three
    assert found["due"].to_list() == [1.0, 4.5]
    assert found["ttft"].to_list() == [20.0, None], "of 5, 7 and two that got none, the middle is none"
    assert stretches(rows, 8, {"ttft": 50.0})["ttft"].to_list() == [20.0], "5, 7, 10, 20, 30 and two that got none"
    assert stretches(rows.clear(), 3, {"ttft": 50.0}).is_empty()


def test_of_many_requests_the_same_are_marked_under_each_policy_and_it_says_so(tmp_path: Path) -> None:
    count = 3 * MOST_MARKS
    for policy in ("fifo", "sjf"):
        rows = [request_row(row, arrival=row / 10, token_times=[row / 10 + 0.5]) for row in range(count)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")]
    figure = drawn("arrivals", write_manifest(tmp_path, cells, rows=count))
    marks = [line for line in figure.axes[0].lines if line.get_marker() in (KNOWN["fifo"][1], KNOWN["sjf"][1])]
    assert [list(line.get_xdata()) for line in marks] == [[row / 10 for row in range(0, count, 3)]] * 2
    assert "mark: one request of 3" in words(figure)


def test_a_policy_that_starves_somebody_does_not_press_the_others_flat(tmp_path: Path) -> None:
    cells = []
    for policy, slowest in (("fifo", 1.0), ("sjf", 1.2), ("fair", 100.0)):
        rows = [request_row(row, token_times=[0.5]) for row in range(5)] + [request_row(5, token_times=[slowest])]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows)
        cells.append(cell_entry(f"continuous-{policy}"))
    (axes,) = drawn("arrivals", write_manifest(tmp_path, cells, rows=6)).axes
    assert (axes.get_yscale(), axes.get_ylabel()) == ("log", "time to first token, ms (log scale)")
    (plain,) = drawn("arrivals", turned_away(tmp_path / "even")).axes
    assert (plain.get_yscale(), plain.get_ylim()[0]) == ("linear", 0)


def test_batches_that_deliver_together_are_told(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "static-fifo", [request_row(0, token_times=[1.0])])
    folder = write_manifest(tmp_path, [cell_entry("static-fifo")], rows=1)
    assert "static: tokens as computed; the client sees them when the batch ends" in words(drawn("arrivals", folder))


def test_nobody_served_is_said(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(row, status="rejected") for row in range(3)])
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=3)
    assert "no request got a token" in words(drawn("arrivals", folder))
    assert view(folder).requests["ttft"].null_count() == 3
