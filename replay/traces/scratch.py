"""Temporary files for what does not fit into memory: rows as they were read, rows in order, and rows in parts.

They are gone when nobody holds the `Scratch` any more, and at the latest when the process ends, unless it is killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal
from weakref import finalize

import polars as pl
from polars.exceptions import PolarsError

from replay.errors import OutputError

COMPRESSION: Literal["lz4"] = "lz4"  # read more often than kept
PART = "__part"
AT_ONCE = 2_000_000  # rows that are sorted in memory: two hundred bytes each are no more than half a gigabyte
FULL = {
    "os error 27": "a file grows too large",
    "os error 28": "no space is left",
    "os error 122": "a quota is used up",
}


class Scratch:
    """A folder in the place that the system has for temporary files (`TMPDIR`), made when the first file is."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._numbers = count()

    def file(self) -> Path:
        """The name of a Parquet file that is not there yet."""
        if self._folder is None:
            self._folder = new_folder()
            finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"{next(self._numbers)}.parquet"

    def spooled(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The same rows, from a file that is quick to read."""
        file = self.file()
        with said_if_full(file.parent):
            rows.sink_parquet(file, compression=COMPRESSION)
        return pl.scan_parquet(file)

    def parts(self, rows: pl.LazyFrame, number: pl.Expr, count: int) -> list[pl.LazyFrame]:
        """The rows in about `count` parts, those of one number (of 64 bits, without sign) in one; in order in each."""
        if count <= 1:
            return [rows]
        folder = self.file().with_suffix("")
        target = pl.PartitionBy(
            folder,
            key={PART: number % count},
            include_key=False,
            file_path_provider=lambda found: f"{found.partition_keys.item()}.parquet",
            approximate_bytes_per_file=2**62,  # one file a part
        )
        rows.sink_parquet(target, compression=COMPRESSION, mkdir=True)
        return [pl.scan_parquet(file) for file in sorted(folder.iterdir())]

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
            with said_if_full(parts[-1].parent):
                ordered.write_parquet(parts[-1], compression=COMPRESSION)
        nothing = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if not known[name]]
        return pl.scan_parquet(parts).with_columns(nothing).select(schema.names())


def new_folder() -> Path:
    """A new folder for temporary files; raises `OutputError` where there can be none."""
    wanted = os.environ.get("TMPDIR") or None  # Python would go elsewhere if it cannot be written to
    try:
        return Path(mkdtemp(prefix="replay-", dir=wanted))
    except OSError as fault:
        reason = f"is no folder for temporary files ({fault.strerror}); set TMPDIR to one with room for the trace"
        raise OutputError(f"{wanted or 'TMPDIR'}: {reason}") from fault


@contextmanager
def said_if_full(folder: Path) -> Iterator[None]:
    """What is written in this block may be more than fits: then it is `OutputError`, and no fault of what is read."""
    try:
        yield
    except (OSError, PolarsError) as fault:
        reason = next((said for mark, said in FULL.items() if f"({mark})" in str(fault)), None)
        if reason is None:
            raise
        raise OutputError(
            f"{folder}: the trace needs more room for temporary files ({reason}); set TMPDIR to a folder that has it"
        ) from fault
