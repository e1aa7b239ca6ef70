"""A run in which fixed sizes stand beside sizes that adapt: its picture, its metric and what its report says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.colors import to_hex
from pictures import drawn, one_request, view, words
from runs import cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.plots import draw_all, plots
from replay.plots.batch_sizes import over_time
from replay.plots.view import INVALID, KNOWN
from replay.report import write_report
from replay.results import read_run

RULE = {"max_running": {"rule": "aimd", "tpot_ms": 40.0}}


def adapting(folder: Path, **fields: Any) -> Path:
    """Sizes 4 for 100 ms and 2 for 300 ms, beside a fixed 8. A request stays resident while the size is below them."""
    steps = [
        step_row(0, 0.0, 0.1, slots=4, running=4, scheduled=3, waiting=2, used_blocks=128, decodes=3),
        step_row(1, 0.1, 0.4, slots=2, running=3, scheduled=3, waiting=1, used_blocks=64, decodes=3),
    ]
    cells = []
    for variant in ("max_running=8", "max_running=aimd"):
        name = f"continuous-fifo-{variant}"
        fixed = variant == "max_running=8"
        rows = [request_row(row, token_times=[0.1, 0.4]) for row in range(3)]
        write_tables(folder / "cells" / name, rows, [{**step, "slots": 8} for step in steps] if fixed else steps)
        settings = {"mode": {"max_running": 8} if fixed else RULE}
        cells.append(cell_entry(name, variant=variant, settings=settings, **({} if fixed else fields)))
    return write_manifest(folder, cells, rows=3)


def test_there_is_no_picture_where_no_size_adapts(tmp_path: Path) -> None:
    folder = one_request(tmp_path / "run")
    assert plots["batch_sizes"](view(folder)) is None
    run = read_run(folder)
    files, problems = draw_all(run, measure(run), tmp_path / "plots")
    assert problems == []
    assert "batch_sizes" not in {file.stem for file in files}
    assert "latency" in {file.stem for file in files}


def test_the_picture_shows_the_size_in_force_over_the_residents(tmp_path: Path) -> None:
    figure = drawn("batch_sizes", adapting(tmp_path))
    sizes, waiting, kv, decoding = figure.axes
    assert sizes.get_title(loc="left") == "continuous (max_running=aimd)"
    (size,) = sizes.lines
    assert (list(size.get_xdata()), list(size.get_ydata())) == ([0.0, 0.1, 0.4], [4.0, 2.0, 2.0])
    for axes, heights in ((waiting, [2, 1, 1]), (kv, [25, 12.5, 12.5]), (decoding, [100, 300, 300])):
        (line,) = axes.lines
        assert list(line.get_ydata()) == pytest.approx(heights)
        assert to_hex(line.get_color()).upper() == KNOWN["fifo"][0].upper()
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] >= max(heights)
    told = words(figure)
    assert "Batch sizes that adapt, with residents, queue and KV use over time, under fifo" in told
    for label in ("batch size in force", "resident requests", "KV blocks used, %", "decoding step, ms"):
        assert label in told
    (title,) = (text for text in figure.texts if text.get_weight() == "bold")
    assert title.get_window_extent().x1 <= figure.bbox.x1


def test_an_invalid_cell_is_grey_and_named(tmp_path: Path) -> None:
    figure = drawn("batch_sizes", adapting(tmp_path, valid=False, invalid_reason="lag"))
    assert to_hex(figure.axes[1].lines[0].get_color()) == INVALID
    assert "invalid: continuous (max_running=aimd), fifo (arrivals were taken in too late)" in words(figure)


def test_a_cell_without_steps_says_so(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "static-fifo", [request_row(0, status="failed", ended=0.1)])
    settings = {"mode": {"batch_size": {"rule": "adaptive"}}}
    figure = drawn("batch_sizes", write_manifest(tmp_path, [cell_entry("static-fifo", settings=settings)], rows=1))
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["no data"] * 4


def test_a_long_run_is_told_in_few_points_which_end_with_it(tmp_path: Path) -> None:
    steps = [step_row(step, step / 100, (step + 1) / 100, slots=1 + step % 7) for step in range(3000)]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[30.0])], steps)
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1))
    line = over_time(run.cells[0])
    assert len(line) <= 402
    assert line["time"].is_sorted()
    assert line["time"][-1] == 30.0
    assert set(line["size"]) <= set(range(1, 8)), "a size in force is one that there was, not a mean of several"


def test_the_size_in_force_is_weighted_with_time_and_shown_where_one_adapts(tmp_path: Path) -> None:
    folder = adapting(tmp_path / "adapting")
    summary = measure(read_run(folder)).summary.filter(pl.col("metric") == "size_in_force")
    # 4 for 100 ms and 2 for 300 ms: 2.5, and not the 3 of the steps' mean
    assert dict(summary.select("cell", "value").iter_rows()) == {
        "continuous-fifo-max_running=8": pytest.approx(8.0),
        "continuous-fifo-max_running=aimd": pytest.approx(2.5),
    }
    write_report(folder, plots=False)
    table = (folder / "comparison.md").read_text().split("### What the engine did")[1]
    assert "| size in force, mean |" in table.splitlines()[2]
    assert "| continuous (max_running=aimd) | fifo | 3.00 | 2.50 |" in table
    plain = one_request(tmp_path / "plain")
    write_report(plain, plots=False)
    assert "size in force, mean" not in (plain / "comparison.md").read_text()


def test_the_report_names_rules_beside_numbers(tmp_path: Path) -> None:
    folder = adapting(tmp_path)
    write_report(folder, plots=False)
    text = (folder / "comparison.md").read_text()
    assert "- mode continuous (max_running=aimd): max_running aimd (tpot_ms 40.0)" in text
    compared = text.split("### Settings compared")[1].split("###")[0]
    assert "| max_running=8 |" in compared
    assert "| max_running=aimd |" in compared


def test_the_trade_offs_line_joins_the_fixed_sizes_only(tmp_path: Path) -> None:
    sizes = (1, 2, 4)
    modes = {f"continuous max_running={size}": {"max_running": size} for size in sizes}
    folder = simulated_run(tmp_path, policies=["fifo"], modes=modes, count=12)

    def joined(found: Path) -> int:
        axes = drawn("tradeoff", found).axes[0]
        return max(len(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "-")

    assert joined(folder) == 3
    manifest = (folder / "manifest.json").read_text()
    changed = manifest.replace('{"mode": {"max_running": 4}}', '{"mode": {"max_running": {"rule": "aimd"}}}')
    assert changed != manifest
    (folder / "manifest.json").write_text(changed)
    assert joined(folder) == 2
    assert "sizes: max_running" in words(drawn("tradeoff", folder))


def test_the_trade_offs_line_joins_no_names(tmp_path: Path) -> None:
    for cell in ("native", "fp16"):
        write_tables(tmp_path / "cells" / f"continuous-fifo-linears={cell}", [request_row(0, token_times=[0.1, 0.2])])
    cells = [cell_entry(f"continuous-fifo-linears={cell}", variant=f"linears={cell}") for cell in ("native", "fp16")]
    made = drawn("tradeoff", write_manifest(tmp_path, cells, rows=1))
    assert max(len(line.get_xdata()) for line in made.axes[0].lines) == 1
    assert "words: linears" in words(made)
