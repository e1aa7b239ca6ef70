"""The roofline: marks where the summary says, under the roof of the ceilings; nothing where none were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.executors.model_shape import ModelShape
from replay.executors.work import Work
from replay.metrics import measure
from replay.plots import plots
from replay.plots.view import views
from replay.results import read_run

SHAPE = ModelShape(layers=2, hidden=8, heads=4, kv_heads=2, head_dim=2, intermediate=16, vocabulary=32, tied=True)
WORK = Work(SHAPE, weight_itemsize=4, kv_itemsize=4).facts()
CEILINGS: dict[str, Any] = {
    "device": "A Processor",
    "threads": 2,
    "dtype": "float32",
    "arithmetic": 4e9,
    "read": 1e9,
    "copy": 0.5e9,
    "how": {"arithmetic": "products", "read": "sums", "copy": "copies"},
    "measured": "2026-01-02T03:04:05+00:00",
    "versions": {"torch": "2"},
}


def drawn(folder: Path, *cells: str, **facts: Any) -> Figure | None:
    for cell in cells:
        steps = [step_row(0, 0.0, 0.01, prefill_tokens=3, context_tokens=3, attention_pairs=6, new_tokens=1)]
        write_tables(folder / "cells" / cell, [request_row(0, prompt_tokens=3, token_times=[0.01])], steps)
    run = read_run(write_manifest(folder, [cell_entry(cell, **facts) for cell in cells], rows=1))
    (view,) = views(run, measure(run))
    return plots["roofline"](view)


def test_marks_and_roof_lie_where_the_figures_say(tmp_path: Path) -> None:
    made = drawn(tmp_path, "continuous-fifo", "static-sjf", work=WORK, ceilings=CEILINGS)
    assert made is not None
    (axes,) = made.axes
    roof, *marks = axes.get_lines()
    flops, traffic = 2 * (3 * 1152 + 256) + 64 * 6, 4 * (1152 + 256) + 64 * 6
    assert len(marks) == 2
    for mark in marks:
        (x,), (y,) = mark.get_data()
        assert (x, y) == (pytest.approx(flops / traffic), pytest.approx(flops / 0.01 / 1e9))
    across, up = roof.get_data()
    assert across[1] == pytest.approx(4.0)  # FLOP a byte at which 4 GFLOP/s and 1 GB/s meet
    assert list(up[1:]) == [4.0, 4.0]
    assert up[0] == pytest.approx(across[0])  # 1 GB/s
    assert {text.get_text() for text in axes.texts} == {"1.00 GB/s", "4.00 GFLOP/s"}
    assert "roof: A Processor, 2 threads, float32" in [text.get_text() for text in made.legends[0].get_texts()]


@pytest.mark.parametrize("facts", [{}, {"work": WORK}, {"ceilings": CEILINGS}, {"simulated": True}])
def test_nothing_is_drawn_where_no_ceilings_or_no_work_are_known(tmp_path: Path, facts: dict[str, Any]) -> None:
    assert drawn(tmp_path, "continuous-fifo", **facts) is None


def test_a_legend_with_long_names_is_not_cut(tmp_path: Path) -> None:
    ceilings = CEILINGS | {"device": "A Processor with a name that its maker made as long as there was room on the box"}
    names = ["continuous-fifo", "static-sjf", "dynamic-priority"]
    made = drawn(tmp_path, *names, work=WORK, ceilings=ceilings, variant="linears=native, token_budget=2048")
    assert made is not None
    made.draw_without_rendering()
    box = made.legends[0].get_window_extent()
    assert len(made.legends) == 1
    assert 0 <= box.x0 < box.x1 <= made.bbox.x1


def test_a_mode_fills_its_marks_as_in_the_other_pictures(tmp_path: Path) -> None:
    names = ["static-fifo", "dynamic-fifo", "continuous-fifo"]
    made = drawn(tmp_path, *names, work=WORK, ceilings=CEILINGS)
    assert made is not None
    found = {entry.get_label(): entry.get_fillstyle() for entry in made.legends[0].legend_handles if entry is not None}
    assert [found[mode] for mode in ("static", "dynamic", "continuous")] == ["none", "left", "full"]
