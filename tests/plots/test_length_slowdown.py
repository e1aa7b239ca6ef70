"""Slowdown by length of the answer: the bins are the report's own, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import drawn, one_request, view, words
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.plots import plots
from replay.plots.view import KNOWN


def short_and_long(folder: Path, *, repeats: int = 1, **fields: object) -> Path:
    """Two answers of 1 token, which take 5 and 7 times as long as alone (with a repeat, 1 more), and one of 9, which
    takes twice as long; under sjf the long one got no answer."""
    cells = []
    for policy in ("fifo", "sjf"):
        for repeat in range(repeats):
            rows = [
                request_row(row, output_tokens=1, token_times=[0.1 * (slowed + repeat)], alone=0.1)
                for row, slowed in enumerate((5, 7))
            ]
            if policy == "fifo":
                rows.append(
                    request_row(2, output_tokens=9, token_times=[0.1 * place for place in range(1, 10)], alone=0.45)
                )
            else:
                rows.append(request_row(2, output_tokens=9, status="rejected"))
            name = f"continuous-{policy}-{repeat}"
            write_tables(folder / "cells" / name, rows)
            cells.append(cell_entry(name, repeat=repeat))
    return write_manifest(folder, cells, rows=3, **fields)


def test_a_line_joins_the_mean_slowdowns_of_the_bins(tmp_path: Path) -> None:
    (axes,) = drawn("length_slowdown", short_and_long(tmp_path, length_bins=[4])).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-4\n(2)", "over 4\n(1)"]
    lines = {line.get_marker(): line for line in axes.lines}
    fifo, sjf = lines[KNOWN["fifo"][1]], lines[KNOWN["sjf"][1]]
    assert list(fifo.get_ydata()) == pytest.approx([6, 2])
    assert list(sjf.get_ydata()) == pytest.approx([6]), "nobody of the long ones has a slowdown"
    assert fifo.get_xdata()[0] < 0 < sjf.get_xdata()[0] < 0.5, "side by side in the bin, so that both are seen"
    assert axes.get_ylabel() == "mean slowdown, times"


def test_bars_reach_over_the_repeats(tmp_path: Path) -> None:
    (axes,) = drawn("length_slowdown", short_and_long(tmp_path, repeats=2, length_bins=[4])).axes
    bars = [line for line in axes.lines if line.get_marker() in ("", "None")]
    assert [pytest.approx(list(bar.get_ydata())) for bar in bars] == [[6, 7], [2, 2], [6, 7]]


def test_there_is_none_without_slowdowns_or_with_one_bin(tmp_path: Path) -> None:
    assert plots["length_slowdown"](view(one_request(tmp_path / "one"))) is None
    rows = [request_row(row, output_tokens=length, token_times=[0.1]) for row, length in enumerate((1, 9))]
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    folder = write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=2, length_bins=[4])
    assert plots["length_slowdown"](view(folder)) is None
    assert "How much longer requests take than alone" in words(
        drawn("length_slowdown", short_and_long(tmp_path / "known", length_bins=[4]))
    )
