"""The picture of latency against load: a line for each policy, and where they part."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from pictures import one_request, view, words
from runs import load_run

from replay.metrics import measure
from replay.plots import draw_all, plots
from replay.plots.canvas import look
from replay.plots.view import INVALID, KNOWN, views
from replay.results import read_run

GAINS = {1.0: 0.0, 2.0: 0.2, 8.0: 0.4}


def drawn(folder: Path):
    run = read_run(folder)
    with look():
        figure = plots["loads"](views(run, measure(run))[0])
        assert figure is not None
        figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def lines(axes) -> dict[str, list[tuple[float, float]]]:
    """The points of each policy's line, by colour."""
    found = {}
    for line in axes.lines:
        if len(line.get_xdata()) == len(GAINS):
            points = zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True)
            found[to_hex(line.get_color()).upper()] = [(x, round(y, 6)) for x, y in points]
    return found


def test_a_line_for_each_policy_and_a_mark_where_they_part(tmp_path: Path) -> None:
    figure = drawn(load_run(tmp_path, GAINS))
    mean, p99 = figure.axes
    expected = {
        KNOWN["fifo"][0].upper(): [(1.0, 500.0), (2.0, 500.0), (8.0, 500.0)],
        KNOWN["sjf"][0].upper(): [(1.0, 500.0), (2.0, 300.0), (8.0, 100.0)],
    }
    for axes in (mean, p99):
        assert lines(axes) == expected
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        (edge,) = [line for line in axes.lines if list(line.get_ydata()) == [0, 1]]
        assert list(edge.get_xdata()) == [2.0, 2.0]
    told = words(figure)
    assert "continuous policies part from 2x on" in told
    for label in ("Latency against load: sample", "mean TTFT, ms (log scale)", "policies part here", "1x", "8x"):
        assert label in told


def test_it_is_drawn_once_for_all_loads(tmp_path: Path) -> None:
    run = read_run(load_run(tmp_path, GAINS))
    assert [plots["loads"](one) is not None for one in views(run, measure(run))] == [True, False, False]
    assert plots["loads"](view(one_request(tmp_path / "one"))) is None
    files, problems = draw_all(run, measure(run), tmp_path / "plots")
    assert problems == []
    assert [file.name for file in files if file.name.startswith("loads")] == ["loads-1.png", "loads-1.svg"]


def test_an_invalid_cell_is_grey(tmp_path: Path) -> None:
    figure = drawn(load_run(tmp_path, GAINS, valid=False, invalid_reason="lag"))
    grey = [line for line in figure.axes[0].lines if to_hex(line.get_color()) == INVALID]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in grey] == [([8.0], [pytest.approx(100.0)])]
    assert "invalid" in words(figure)


def test_loads_at_which_nobody_parts_have_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAINS, 2.0, 0.0)
    monkeypatch.setitem(GAINS, 8.0, 0.0)
    figure = drawn(load_run(tmp_path, GAINS))
    assert "policies cannot be told apart" in words(figure)
    assert not [line for line in figure.axes[0].lines if list(line.get_ydata()) == [0, 1]]
