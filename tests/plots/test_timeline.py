"""Evictions and swaps over time: counted up, and there only where there were any."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import drawn, one_request
from runs import cell_entry, request_row, step_row, write_manifest, write_tables


def test_evictions_and_swaps_are_counted_up_under_kv_use(tmp_path: Path) -> None:
    steps = [
        step_row(0, 0.0, 0.1, running=2, used_blocks=512),
        step_row(1, 0.1, 0.2, running=2, used_blocks=512, evicted=2, swapped_out=3),
        step_row(2, 0.2, 0.3, running=1, used_blocks=256, evicted=1, swapped_in=3),
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[0.3])], steps)
    figure = drawn("timeline", write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1))
    kv, evictions, swapped = figure.axes[2:]
    assert [axes.get_ylabel() for axes in (kv, evictions, swapped)] == [
        "KV blocks used, %",
        "evictions so far",
        "blocks swapped so far",
    ]
    for axes, heights in ((kv, [100, 100, 50, 0]), (evictions, [0, 2, 3, 3]), (swapped, [0, 3, 6, 6])):
        (line,) = axes.lines
        assert list(line.get_xdata()) == pytest.approx([0.0, 0.1, 0.2, 0.3])
        assert list(line.get_ydata()) == pytest.approx(heights)


def test_without_evictions_there_is_no_row_of_them(tmp_path: Path) -> None:
    labels = [axes.get_ylabel() for axes in drawn("timeline", one_request(tmp_path)).axes]
    assert labels == ["running requests", "waiting requests", "KV blocks used, %"]


def test_a_step_counts_as_long_as_it_takes_and_an_idle_engine_runs_nobody(tmp_path: Path) -> None:
    steps = [
        step_row(0, 0.0, 0.001, running=1, used_blocks=128),
        step_row(1, 0.001, 0.004, running=5, used_blocks=640),  # in one bin with the first, for three times as long
        step_row(2, 3.0, 4.0, running=2, admitted=2, used_blocks=256),
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[4.0])], steps)
    running, waiting, kv = drawn("timeline", write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1)).axes
    for axes, heights in ((running, [4, 0, 2, 0]), (waiting, [0, 0, 0, 0]), (kv, [100, 0, 50, 0])):
        (line,) = axes.lines
        assert list(line.get_xdata()) == pytest.approx([0.0, 0.004, 3.0, 4.0])
        assert list(line.get_ydata()) == pytest.approx(heights)
