"""Small traces for tests of their pictures, and a picture's figure and words."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from replay.clock import NANOSECONDS
from replay.plots.canvas import look
from replay.plots.traces import trace_pictures
from replay.traces.table import SCHEMA, Trace


def trace_of(arrivals: list[float], *, block_size: int | None = None, scope: Any = "global", **columns: Any) -> Trace:
    """A trace by arrivals in seconds; lengths are 1 unless they are given, and all else is not known."""
    count = len(arrivals)
    given = {
        "prompt_tokens": [1] * count,
        "output_tokens": [1] * count,
        "request_id": [str(row) for row in range(count)],
        **columns,
        "arrival": [round(arrival * NANOSECONDS) for arrival in arrivals],
    }
    frame = pl.DataFrame({name: given.get(name, [None] * count) for name in SCHEMA}, schema=SCHEMA)
    return Trace("made", Path("made.parquet"), frame.lazy(), block_size=block_size, hash_scope=scope)


def picture(name: str, trace: Trace) -> Figure | str:
    """What the picture gives; a figure is rendered once, so that what only fails while drawing fails here."""
    with look():
        made = trace_pictures[name](trace)
        if isinstance(made, Figure):
            made.savefig(io.BytesIO(), format="png", dpi=40)
    return made


def figure_of(name: str, trace: Trace) -> Figure:
    made = picture(name, trace)
    assert isinstance(made, Figure), made
    return made


def title(figure: Figure) -> str:
    """The title on one line."""
    return " ".join(figure.get_suptitle().split())
