"""What a page keeps of a large run: all of its small cells, and of each large one the time around a chosen window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet

from replay.plots.slot_time import Window
from replay.results import Cell

BUDGET = 600_000
"""Spans that a page holds, and requests: about 4 MB of it."""


def size_of(cell: Cell) -> int:
    """Spans of a cell, or requests if they are more, as its files tell without being read."""
    return max(sum(_length(file) for file in cell.files(table)) for table in ("spans", "requests"))


def _length(file: Path) -> int:
    try:
        return int(parquet.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError):
        return 0  # a broken last part is what a killed process leaves


def share_of(sizes: Sequence[int], budget: int) -> int:
    """The most that each may keep, so that all of them fit: what the small ones leave is the large ones'."""
    left, share = budget, budget
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return share
        left -= size
    return max([share, *sizes])


def cut(
    spans: pl.DataFrame, requests: pl.DataFrame, extent: tuple[float, float], window: Window, share: int
) -> tuple[pl.DataFrame, pl.DataFrame, Window]:
    """Of a cell the longest time around the middle of `window` that has at most `share` spans and requests: these, and
    which time it is."""
    start, end = extent
    middle = min(max((window.start + window.end) / 2, start), end)
    rows = requests.with_columns(begun="due", gone=pl.coalesce("ended", pl.lit(end))).drop_nulls("begun")
    edges = [
        [np.sort(table[name].to_numpy()) for name in names]
        for table, names in ((spans, ("start", "end")), (rows, ("begun", "gone")))
    ]
    shortest, longest = 0.0, end - start
    for _ in range(40):  # halvings: finer than any clock
        half = (shortest + longest) / 2
        counts = [
            int(np.searchsorted(begun, middle + half) - np.searchsorted(gone, middle - half, side="right"))
            for begun, gone in edges
        ]
        shortest, longest = (half, longest) if max(counts) <= share else (shortest, half)
    kept = Window(max(start, middle - shortest), min(end, middle + shortest), whole=False)
    held = spans.filter((pl.col("start") < kept.end) & (pl.col("end") > kept.start))
    inside = (pl.col("begun") < kept.end) & (pl.col("gone") > kept.start)
    there = rows.filter(inside | pl.col("row").is_in(held["row"].unique().implode())).drop("begun", "gone")
    return held, there, kept
