"""Pictures of small runs for tests: the figure, its words, and two runs that many tests draw."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.text import Text
from runs import cell_entry, request_row, span_row, step_row, write_manifest, write_tables

from replay.metrics import measure
from replay.plots import plots
from replay.plots.canvas import look
from replay.plots.view import View, views
from replay.results import read_run

SOMETIMES = (
    *("batch_sizes", "efficiency", "frontier", "heat_map", "length_slowdown"),
    *("loads", "roofline", "service", "windowed_difference"),
)
ALWAYS = [name for name in plots if name not in SOMETIMES]
"""The pictures that every run has: the others are there where a size adapts, where a trace was replayed at several
loads, where ceilings were measured, where sizes were swept, where there are two cells, two bins of lengths or two
users, and where two users wanted service at once."""


def view(folder: Path) -> View:
    run = read_run(folder)
    return views(run, measure(run))[0]


def drawn(name: str, folder: Path) -> Figure:
    """The figure of one plot, rendered once, so that what only fails while drawing fails here."""
    with look():
        figure = plots[name](view(folder))
        assert figure is not None, "the run has this picture"
        figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def words(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text().split()) for text in figure.findobj(Text))


def two_panels(folder: Path) -> Path:
    """TTFTs in ms. continuous: fifo 10, sjf 20, priority 30; static, in another order: priority 60, fifo 40; no sjf."""
    cells = []
    for cell, ttft in (
        ("continuous-fifo", 10),
        ("continuous-sjf", 20),
        ("continuous-priority", 30),
        ("static-priority", 60),
        ("static-fifo", 40),
    ):
        first = ttft / 1000
        rows = [request_row(row, user="ana", token_times=[first, first + 0.01, first + 0.02]) for row in range(3)]
        spans = [span_row(row, row, "decode", 0.0, first + 0.02) for row in range(3)]
        write_tables(folder / "cells" / cell, rows, [step_row(0, 0.0, 0.1, running=3)], spans)
        cells.append(cell_entry(cell))
    return write_manifest(folder, cells, rows=3)


def one_request(folder: Path) -> Path:
    rows = [request_row(0, admitted=0.0, token_times=[0.1])]
    spans = [span_row(0, 0, "prefill", 0.0, 0.1)]
    write_tables(folder / "cells" / "continuous-fifo", rows, [step_row(0, 0.0, 0.1, running=1)], spans)
    return write_manifest(folder, [cell_entry("continuous-fifo")], rows=1)
