"""What a reader takes from a picture: its axes, its labels, and which cells are invalid."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from pictures import ALWAYS, drawn, one_request, two_panels, view, words
from runs import cell_entry, request_row, span_row, step_row, write_manifest, write_tables

from replay.plots.canvas import log_ticks
from replay.plots.view import INVALID, KNOWN


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (760, 7100, 10, [500, 1000, 2000, 5000, 10000]),
        (10, 50, 10, [10, 20, 50, 100]),
        (1.1, 4.8, 10, [1, 2, 5, 10]),  # 4.8 is nearer to the edge
        (1.01, 4.5, 10, [0.5, 1, 2, 5]),
        (0.2, 0.9, 7, [0.1, 0.2, 0.5, 1]),
        (55, 9000, 7, [10, 100, 1000, 10000]),  # eight of 1-2-5
        (55, 9000, 10, [50, 100, 200, 500, 1000, 2000, 5000, 10000]),
        (3, 2_000_000, 10, [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7]),
    ],
)
def test_a_log_axis_has_four_ticks_around_its_values(low: float, high: float, most: int, ticks: list[float]) -> None:
    assert log_ticks(low, high, most) == ticks


@pytest.mark.parametrize("name", ["latency", "distributions", "tradeoff"])
def test_a_log_axis_says_so_and_throughput_never_is_one(tmp_path: Path, name: str) -> None:
    """TTFTs from 10 to 60 ms; every request has 10 ms per token."""
    figure = drawn(name, two_panels(tmp_path))
    logarithmic = 0
    for axes in figure.axes:
        for axis, low, high in ((axes.xaxis, *axes.get_xlim()), (axes.yaxis, *axes.get_ylim())):
            label = axis.get_label_text()
            if axis.get_scale() == "log":
                logarithmic += 1
                assert len([tick for tick in axis.get_ticklocs() if low <= tick <= high]) >= 4
            if label:
                assert label.endswith("(log scale)") == (axis.get_scale() == "log")
            if label.startswith("output tokens/s"):
                assert (axis.get_scale(), low) == ("linear", 0)
    assert logarithmic


def late_cell(folder: Path, *, repeats: int) -> Path:
    """static under fifo and sjf; the last repeat of sjf took its arrivals in too late."""
    cells = []
    for policy, repeat in (("fifo", 0), *(("sjf", repeat) for repeat in range(repeats))):
        rows = [request_row(row, user="ana", token_times=[0.1, 0.2]) for row in range(3)]
        spans = [span_row(row, row, "decode", 0.0, 0.2) for row in range(3)]
        name = f"static-{policy}-{repeat}"
        write_tables(folder / "cells" / name, rows, [step_row(0, 0.0, 0.2, running=3)], spans)
        valid = policy == "fifo" or repeat < repeats - 1
        reason = None if valid else "lag p99 is 30.0 ms, over the limit of 10 ms"
        cells.append(cell_entry(name, repeat=repeat, valid=valid, invalid_reason=reason, lag_p99_ms=1 if valid else 30))
    return write_manifest(folder, cells, rows=3)


@pytest.mark.parametrize("name", ALWAYS)
def test_an_invalid_cell_is_named_and_marked_where_it_is_drawn(tmp_path: Path, name: str) -> None:
    said, marked = "invalid: static, sjf (arrivals were taken in too late)", "sjf (invalid)"
    one = words(drawn(name, late_cell(tmp_path / "one", repeats=1)))
    assert ((said in one), (marked in one)) == (
        (name != "slots"),
        (name != "slots"),
    )  # slots shows fifo, which is valid
    two = words(drawn(name, late_cell(tmp_path / "two", repeats=2)))
    shows_one_replay = name in ("arrivals", "slots", "timeline")  # of the arm, and takes the valid one
    assert (said in two, "invalid" in two) == (not shows_one_replay, not shows_one_replay)


def test_an_invalid_cell_is_grey(tmp_path: Path) -> None:
    figure = drawn("latency", late_cell(tmp_path, repeats=1))
    marks = [line for line in figure.axes[0].lines if line.get_marker() in (KNOWN["fifo"][1], KNOWN["sjf"][1])]
    assert [to_hex(line.get_color()).upper() for line in marks] == [KNOWN["fifo"][0].upper(), INVALID.upper()]


def test_no_label_of_the_latencies_touches_a_mark(tmp_path: Path) -> None:
    """With numbers as long as they come: five policies whose TTFTs are near to 40 s."""
    cells = []
    for place, policy in enumerate(KNOWN):
        first = 40 + place / 100
        rows = [request_row(row, token_times=[first, first + 1, first + 2]) for row in range(3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, [step_row(0, 0.0, 43.0, running=3)])
        cells.append(cell_entry(f"continuous-{policy}"))
    figure = drawn("latency", write_manifest(tmp_path, cells, rows=3))
    for axes in figure.axes:
        marks = [line.get_window_extent() for line in axes.lines if line.get_marker() not in ("", "None")]
        labels = [text.get_window_extent() for text in axes.texts]
        assert (len(labels), len(marks)) == (5, 15)
        assert not [label for label in labels for mark in marks if label.overlaps(mark)]


def test_the_timeline_counts_requests_in_whole_numbers(tmp_path: Path) -> None:
    figure = drawn("timeline", one_request(tmp_path))
    assert all(tick == int(tick) for axes in figure.axes[:2] for tick in axes.get_yticks())


def test_no_panel_of_the_timeline_cuts_its_lines(tmp_path: Path) -> None:
    cells = []
    for cell, waiting in (("static-fifo", 3), ("continuous-fifo", 40)):
        steps = [step_row(0, 0.0, 1.0, running=1, waiting=waiting, used_blocks=1)]
        write_tables(tmp_path / "cells" / cell, [request_row(0, token_times=[1.0])], steps)
        cells.append(cell_entry(cell))
    figure = drawn("timeline", write_manifest(tmp_path, cells, rows=1))
    for axes in figure.axes:
        highest = max(max(line.get_ydata()) for line in axes.lines)
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] >= highest


@pytest.mark.parametrize("name", ALWAYS)
def test_no_title_is_cut_where_a_picture_is_narrow(tmp_path: Path, name: str) -> None:
    figure = drawn(name, one_request(tmp_path))
    (title,) = (text for text in figure.texts if text.get_weight() == "bold")
    assert title.get_window_extent().x1 <= figure.bbox.x1


def test_of_twelve_policies_eight_are_drawn_each_in_its_own_colour_and_the_others_are_told(tmp_path: Path) -> None:
    cells = []
    names = ["fifo", *(f"own{place}" for place in range(11))]
    for place, policy in enumerate(names):
        first = 0.1 + 0.01 * place
        rows = [request_row(row, user="ana", token_times=[first, first + 0.1]) for row in range(3)]
        spans = [span_row(row, row, "decode", 0.0, first + 0.1) for row in range(3)]
        write_tables(tmp_path / "cells" / f"continuous-{policy}", rows, [step_row(0, 0.0, 1.0, running=3)], spans)
        cells.append(cell_entry(f"continuous-{policy}"))
    folder = write_manifest(tmp_path, cells, rows=3)
    seen = view(folder)
    assert seen.policies == ["fifo", "own0", "own1", "own2", "own3", "own8", "own9", "own10"]
    assert len({seen.colour(policy) for policy in seen.policies}) == 8
    for name in ("latency", "users"):
        told = words(drawn(name, folder))
        assert "8 of 12 policies: fifo, the 4 best and the 3 worst by mean end-to-end time in continuous" in told
        assert "own3" in told
        assert "own5" not in told
    assert "8 of 12" not in words(drawn("slots", folder)), "it shows one policy"
