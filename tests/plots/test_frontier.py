"""The frontier over sizes that were swept: who is beaten is faint, and the sizes stand at the marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import drawn, two_panels, view, words
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.metrics.arms import Arm
from replay.plots import plots
from replay.plots.frontier import DOMINATED, on_frontier
from replay.plots.plane import spot


def swept(folder: Path, sizes: dict[int, tuple[float, float]], *, policy: str = "fifo") -> list[dict[str, object]]:
    """By max_running: when the first of two tokens came, and the second."""
    cells = []
    for size, times in sizes.items():
        name = f"continuous-{policy}-max_running={size}"
        write_tables(folder / "cells" / name, [request_row(0, token_times=list(times))])
        cells.append(cell_entry(name, variant=f"max_running={size}", settings={"mode": {"max_running": size}}))
    return cells


def test_the_line_joins_what_no_other_size_beats(tmp_path: Path) -> None:
    """Tokens a second and TTFT: 5 and 100 ms, 10 and 150 ms; size 4 has 8 and 180 ms, and size 2 beats it."""
    cells = swept(tmp_path, {1: (0.1, 0.4), 2: (0.15, 0.2), 4: (0.18, 0.25)})
    figure = drawn("frontier", write_manifest(tmp_path, cells, rows=1))
    ttft = figure.axes[0]
    band, line = (line for line in ttft.lines if len(line.get_xdata()) > 1)
    assert list(line.get_xdata()) == list(band.get_xdata()) == pytest.approx([5, 10])
    assert list(line.get_ydata()) == pytest.approx([100, 150])
    marks = {line.get_xdata()[0]: line.get_alpha() for line in ttft.lines if len(line.get_xdata()) == 1}
    assert [x for x, alpha in marks.items() if alpha == DOMINATED] == [pytest.approx(8)]
    assert {text.get_text() for text in ttft.texts} == {"1", "2"}
    assert "The frontier of throughput and latency over max_running" in words(figure)


def test_who_is_alike_stays_and_who_is_beaten_in_one_alone_goes() -> None:
    places = {"a": (1.0, 5.0), "b": (2.0, 5.0), "c": (2.0, 5.0), "d": (3.0, 9.0), "e": (3.0, 8.0)}
    sizes = {name: Arm("sample", "continuous", "fifo", f"max_running={name}", []) for name in places}
    spots = {sizes[name]: spot([across], [up]) for name, (across, up) in places.items()}
    found = on_frontier({arm: one for arm, one in spots.items() if one is not None})
    assert [arm.variant for arm in found] == ["max_running=b", "max_running=c", "max_running=e"]
    assert spot([], [1.0]) is None


def test_there_is_none_without_a_sweep_of_numbers(tmp_path: Path) -> None:
    assert plots["frontier"](view(two_panels(tmp_path / "no sweep"))) is None
    cells = []
    for word in ("native", "fp16"):
        name = f"continuous-fifo-linears={word}"
        write_tables(tmp_path / "cells" / name, [request_row(0, token_times=[0.1])])
        cells.append(cell_entry(name, variant=f"linears={word}"))
    assert plots["frontier"](view(write_manifest(tmp_path, cells, rows=1))) is None


def test_of_sizes_that_nobody_survived_there_is_no_data(tmp_path: Path) -> None:
    cells = []
    for size in (1, 2):
        name = f"continuous-fifo-max_running={size}"
        write_tables(tmp_path / "cells" / name, [request_row(0, status="failed")])
        cells.append(cell_entry(name, variant=f"max_running={size}"))
    assert words(drawn("frontier", write_manifest(tmp_path, cells, rows=1))).count("no data") == 3
