"""Temporary files for what does not fit into memory: rows as they were read, and rows in order.

They are gone when nobody holds the `Scratch` any more, and at the latest when the process ends, unless it is killed.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal
from weakref import finalize

import polars as pl

COMPRESSION: Literal["lz4"] = "lz4"  # read more often than kept
AT_ONCE = 2_000_000  # rows that are sorted in memory: two hundred bytes each are no more than half a gigabyte


class Scratch:
    """A folder in the place that the system has for temporary files (`TMPDIR`), made when the first file is."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._numbers = count()

    def file(self) -> Path:
        """The name of a Parquet file that is not there yet."""
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="replay-"))
            finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"{next(self._numbers)}.parquet"

    def spooled(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The same rows, from a file that is quick to read."""
        file = self.file()
        rows.sink_parquet(file, compression=COMPRESSION)
        return pl.scan_parquet(file)

    def by_arrival(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows in order of `arrival`, ties as they were: sorted a stretch of time after the other."""
        schema = rows.collect_schema()
        known = rows.select(pl.all().is_not_null().any()).collect(engine="streaming").row(0, named=True)
        rows = rows.select(name for name in schema if known[name])  # columns of nulls are made again at the end
        rows = self.spooled(rows)  # so that each stretch is found by what Parquet knows of its groups of rows
        arrivals = rows.select(pl.col("arrival").sort()).collect(engine="streaming").to_series()
        bounds = arrivals.gather_every(AT_ONCE)[1:].unique(maintain_order=True).to_list()
        parts = []
        for start, end in zip([None, *bounds], [*bounds, None], strict=True):
            part = rows if start is None else rows.filter(pl.col("arrival") >= start)
            part = part if end is None else part.filter(pl.col("arrival") < end)
            parts.append(self.file())
            ordered = part.collect(engine="streaming").sort("arrival", maintain_order=True)
            ordered.write_parquet(parts[-1], compression=COMPRESSION)
        nothing = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if not known[name]]
        return pl.scan_parquet(parts).with_columns(nothing).select(schema.names())
