"""Fairness against throughput: the index and the worst user of each policy, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import drawn, one_request, view, words
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.plots import plots
from replay.plots.view import KNOWN


def two_users(folder: Path, *, repeats: int = 1) -> Path:
    """Alone, a request takes 100 ms. fifo slows both users down twofold; sjf ana by 1 and ben by 3, or 4 in the second
    repeat. Two tokens in all, the last at the end of the longer."""
    cells = []
    for policy, slowed in (("fifo", (2, 2)), ("sjf", (1, 3))):
        for repeat in range(repeats):
            ends = [0.1 * slowed[0], 0.1 * (slowed[1] + (repeat if policy == "sjf" else 0))]
            rows = [
                request_row(row, user=user, token_times=[end], alone=0.1)
                for row, (user, end) in enumerate(zip(("ana", "ben"), ends, strict=True))
            ]
            name = f"continuous-{policy}-{repeat}"
            write_tables(folder / "cells" / name, rows)
            cells.append(cell_entry(name, repeat=repeat))
    return write_manifest(folder, cells, rows=2)


def test_the_marks_are_the_index_and_the_worst_users_slowdown(tmp_path: Path) -> None:
    figure = drawn("efficiency", two_users(tmp_path))
    # (1 + 3)^2 / (2 * (1 + 9)) = 0.8; two tokens in 200 and in 300 ms
    for axes, fifo, sjf in zip(figure.axes, ((10, 1), (10, 2)), ((20 / 3, 0.8), (20 / 3, 3)), strict=True):
        found = {
            line.get_marker(): (line.get_xdata()[0], line.get_ydata()[0])
            for line in axes.lines
            if line.get_marker() in (KNOWN["fifo"][1], KNOWN["sjf"][1])
        }
        assert found == {KNOWN["fifo"][1]: pytest.approx(fifo), KNOWN["sjf"][1]: pytest.approx(sjf)}
        assert axes.get_xlim()[0] == 0
        assert axes.get_xlabel() == "output tokens/s"
    even = figure.axes[0].get_ylim()
    assert even[0] < 0.8
    assert even[1] > 1


def test_bars_reach_over_the_repeats(tmp_path: Path) -> None:
    """ben is slowed down 3 and 4 times: at 20 / 3 and 5 tokens a second."""
    worst = drawn("efficiency", two_users(tmp_path, repeats=2)).axes[1]
    bars = [line for line in worst.lines if len(line.get_xdata()) == 2]
    up = [list(line.get_ydata()) for line in bars if line.get_xdata()[0] == line.get_xdata()[1]]
    assert [pytest.approx(3), pytest.approx(4)] in up
    across = [list(line.get_xdata()) for line in bars if line.get_ydata()[0] == line.get_ydata()[1]]
    assert [pytest.approx(5), pytest.approx(20 / 3)] in across


def test_without_two_users_there_is_none_and_without_slowdowns_it_says_so(tmp_path: Path) -> None:
    assert plots["efficiency"](view(one_request(tmp_path / "nobody"))) is None
    rows = [request_row(row, user=user, token_times=[0.1]) for row, user in enumerate(("ana", "ben"))]
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    told = words(drawn("efficiency", write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=2)))
    assert told.count("no data") == 2
